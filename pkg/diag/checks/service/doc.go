// Package service holds the checks of Services: what the API wants, what each
// agent believes and what each node's maps hold, one check a file.
//
// The layers are compared in package lb; the checks here sort the differences
// into rules. Each difference belongs to one rule, see claim, so that one fault
// is not told twice.
package service
