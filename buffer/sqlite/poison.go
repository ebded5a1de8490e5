//go:build !race

package sqlite

// poison is for builds with the race detector.
func poison([]byte) {}
