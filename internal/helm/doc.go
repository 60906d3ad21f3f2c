// Package helm reads what a Helm chart was given: the values of a stored
// release, and values files, also where they stand inside a manifest. It runs
// nothing and stores nothing; a release may hold secrets.
package helm
