// Package archtest holds the shape of this repository: which package stands
// above which, which one alone may know Cilium's types, and what no library may
// do. Its tests read the source of the whole module and fail with the two names
// and the rule where something stands in the wrong place.
//
// The packages are rooms on floors, and imports only go down: evidence becomes
// facts, facts become findings, findings become one report, and the report is
// drawn. A package that is on no floor yet is an error too, so that a new one is
// given its place on purpose, in [Floors].
//
// The source is parsed, not built, so a rule holds for every operating system
// and build tag at once.
package archtest
