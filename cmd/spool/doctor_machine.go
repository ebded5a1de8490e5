package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spool-dev/spool/buffer/sqlite"
)

// From where on the doctor says something.
const (
	fewFiles  = 4096 // two for each live run with a reader
	tooFew    = 256
	lowDisk   = 1 << 30
	noDisk    = 64 << 20
	slowFlush = 20.0  // ms: a lone stream gets no more than 50 commits a second
	deadFlush = 500.0 // ms: nobody wants to read so slowly
	flushFor  = 500 * time.Millisecond
	// worthwhile is how much compacting must give back, and it must be half of the file: what is less is
	// soon used again.
	worthwhile = 256 << 20
)

func openFiles() finding {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return found(warn, "open files", "the limit cannot be read: %v", err)
	}
	l, n := good, limit.Cur
	switch {
	case n < tooFew:
		l = fail
	case n < fewFiles:
		l = warn
	}
	if l == good {
		return found(l, "open files", "%d at once", n)
	}
	return found(l, "open files", "%d at once, for two sockets of each live run with a reader: raise ulimit -n, or LimitNOFILE", n)
}

// folderFindings looks at the data folder, or at the place where it would be made.
func folderFindings(ctx context.Context, set settings) []finding {
	dir := set.Data
	place, isMade, err := nearest(dir)
	if err != nil {
		return []finding{found(fail, "folder", "%v", err)}
	}
	all := []finding{fileSystem(place), diskSpace(place), flushing(ctx, place)}
	if !isMade {
		return append(all, found(good, "folder", "%s is made at the first start", dir))
	}
	return append(append(all, permissions(dir)), logFindings(ctx, set)...)
}

// nearest is the folder, or the one above that exists.
func nearest(dir string) (place string, isMade bool, err error) {
	if place, err = filepath.Abs(dir); err != nil {
		return "", false, err
	}
	for isMade = true; ; isMade, place = false, filepath.Dir(place) {
		info, err := os.Stat(place)
		switch {
		case err == nil && info.IsDir():
			return place, isMade, nil
		case err == nil:
			return "", false, fmt.Errorf("%s is no folder", place)
		case !os.IsNotExist(err):
			return "", false, err
		}
	}
}

func diskSpace(place string) finding {
	_, free := measure(place)
	l := good
	switch {
	case free < noDisk:
		l = fail
	case free < lowDisk:
		l = warn
	}
	return found(l, "disk space", "%d MiB free", free>>20)
}

func flushing(ctx context.Context, place string) finding {
	times, err := flushTimes(ctx, place, flushFor)
	if err != nil {
		return found(fail, "disk flush", "%v", err)
	}
	p50, p99 := quantile(times, 50), quantile(times, 99)
	text := fmt.Sprintf("p50 %.2f ms, p99 %.2f ms", p50, p99)
	switch {
	case p50 > deadFlush:
		return found(fail, "disk flush", "%s: each event waits for one", text)
	case p50 > slowFlush:
		return found(warn, "disk flush", "%s: each event of a lone stream waits for one", text)
	}
	return found(good, "disk flush", "%s", text)
}

// permissions looks for what others can read, and for what this process cannot write.
func permissions(dir string) finding {
	var open, foreign []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if os.IsNotExist(err) {
			return nil // a running buffer's files come and go
		}
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 && e.Type()&fs.ModeSymlink == 0 {
			open = append(open, filepath.Base(path))
		}
		if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) != os.Geteuid() {
			foreign = append(foreign, filepath.Base(path))
		}
		return nil
	})
	switch {
	case err != nil:
		return found(fail, "permissions", "%v", err)
	case len(foreign) > 0:
		return found(warn, "permissions", "%s: of another user than this one, %d", foreign[0], os.Geteuid())
	case len(open) > 0:
		return found(warn, "permissions", "others can read %s: chmod go-rwx", open[0])
	}
	return found(good, "permissions", "%s is its owner's alone", dir)
}

// logFindings looks at the log without opening it for this process.
func logFindings(ctx context.Context, set settings) []finding {
	if !isThere(filepath.Join(set.Data, "spool.db")) {
		return []finding{found(good, "log", "is made at the first start")}
	}
	keys, _ := set.Encryption.keys() // what is wrong with them the configuration's findings tell
	about, err := sqlite.Look(ctx, set.Data, keys...)
	if err != nil {
		return []finding{found(fail, "log", "%v", err)}
	}
	schema := found(good, "schema", "%d, which this program writes", about.Schema)
	switch {
	case about.Schema > about.Program:
		schema = found(fail, "schema", "%d, of a newer version: this program knows %d", about.Schema, about.Program)
	case about.Schema < about.Program:
		schema = found(warn, "schema", "%d becomes %d at the next start: make a backup before", about.Schema, about.Program)
	}
	room := found(good, "room", "%d MiB, of which %d MiB are free for the next answers", about.Bytes>>20, about.Reusable>>20)
	if about.Reusable >= worthwhile && about.Reusable >= about.Bytes/2 {
		room.Level = warn
		room.Detail += ": where that was a peak, stop the buffer and give them back with spool compact"
	}
	all := append([]finding{schema, room}, keyFindings(set.Encryption, about)...)
	if ahead := time.Until(about.Newest); ahead > maxSkew {
		all = append(all, found(warn, "clock", "the newest run was created %s from now: the clock has gone back", ahead.Round(time.Second)))
	}
	return all
}

// keyFindings says which keys the log needs, of those that are configured and of others.
func keyFindings(e encryptionSettings, about sqlite.About) (all []finding) {
	for i, k := range e.Keys {
		runs := about.Keys[k.Name]
		switch {
		case about.Lacking[k.Name] > 0: // told below
		case i == 0:
			all = append(all, found(good, "encryption", "%s encrypts new runs, and %d need it", k.Name, runs))
		case runs == 0:
			all = append(all, found(warn, "encryption", "no run needs %s any more: take it out of encryption.keys", k.Name))
		default:
			all = append(all, found(good, "encryption", "%d runs need %s, until a buffer that runs alone has wrapped their data keys with %s", runs, k.Name, e.Keys[0].Name))
		}
	}
	if len(about.Lacking) > 0 {
		all = append(all, found(fail, "encryption", "serve refuses the folder: encryption.keys lacks %s, or has another key of that name", needed(about.Lacking)))
	}
	return all
}
