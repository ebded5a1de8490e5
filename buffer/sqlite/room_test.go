package sqlite

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spool-dev/spool/buffer"
)

// What is released makes room for what comes: the file does not grow with every generation of runs.
func TestSweep_RoomIsUsedAgain(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, Config{Dir: dir, lazy: true})
	var sizes []int64
	for range 6 {
		for range 8 {
			log, _ := started(t, s)
			must(t, log.Append(t.Context(), [][]byte{make([]byte, 256<<10)}, buffer.Completed, buffer.Closing{}))
		}
		_, err := s.Sweep(t.Context(), time.Now().Add(time.Second), nil)
		must(t, err)
		must(t, s.check.finish(s.writer.conn))
		info, err := os.Stat(filepath.Join(dir, fileName))
		must(t, err)
		sizes = append(sizes, info.Size())
	}
	if last := sizes[len(sizes)-1]; last > sizes[0]*5/4 {
		t.Errorf("the file grew from generation to generation: %d", sizes)
	}
	must(t, s.Close())
	wantSound(t, dir)
}
