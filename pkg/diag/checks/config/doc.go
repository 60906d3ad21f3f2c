// Package config holds the checks of settings, one check a file.
package config
