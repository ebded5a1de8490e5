package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The staging of make upgrade-demo, smaller.
func TestUpgrade_NobodyNotices(t *testing.T) {
	dir := t.TempDir()
	binary, err := build(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(t.ArtifactDir(), "spool.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() // it is for people
	r, err := run(t.Context(), options{streams: 20, upgrades: 3, pause: 200 * time.Millisecond, binary: binary, dir: filepath.Join(dir, "work"), log: log})
	t.Logf("\n%s", r)
	if err != nil {
		t.Error(err)
	}
	if err := r.verdict(); err != nil {
		t.Error(err)
	}
	if r.streams != 20 || r.upgrades < 3 || r.refused != 1 || r.moved == 0 {
		t.Error("not all of it was played")
	}
}
