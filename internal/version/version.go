// Package version tells which build of the program this is.
package version

import "runtime/debug"

// release is set at build time with -ldflags "-X …/internal/version.release=v1.2.3".
var release string

// String is the release, or the module version that Go recorded, or "devel".
func String() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
