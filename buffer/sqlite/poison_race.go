//go:build race

package sqlite

// poison overwrites what was given back, so that tests with the race detector find who still reads it: they
// see wrong bytes, or the race.
func poison(b []byte) {
	for i := range b {
		b[i] = 0xdb
	}
}
