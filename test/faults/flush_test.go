package faults

import (
	"sync"
	"testing"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// The two calls of SQLite to its file system that a flush is known by.
type (
	openCall = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32
	syncCall = func(tls *libc.TLS, file uintptr, flags int32) int32
)

// flushes tells of each flush that SQLite makes, whatever was configured: it is the file system of this
// process, and hands everything on to the real one.
type flushes struct {
	flush func(path string) (done func()) // called before a flush; done after one that has succeeded

	open    openCall
	opening openCall // ours, and syncing: C has their addresses, and the collector does not know
	syncing syncCall

	mu     sync.Mutex
	paths  map[uintptr]string  // by file
	tables map[uintptr]uintptr // of methods: ours by the real one
	syncs  map[uintptr]syncCall
}

// watchFlushes has flush called until the test ends. There is one file system for the process.
func watchFlushes(t *testing.T, flush func(path string) (done func())) {
	t.Helper()
	tls := libc.NewTLS()
	real := sqlite3.Xsqlite3_vfs_find(tls, 0)
	vfs := *at[sqlite3.Tsqlite3_vfs](real)
	f := &flushes{flush: flush, open: function[openCall](vfs.FxOpen), paths: map[uintptr]string{}, tables: map[uintptr]uintptr{}, syncs: map[uintptr]syncCall{}}
	f.opening, f.syncing = f.opens, f.flushed
	name, err := libc.CString("flushes")
	must(t, err)
	vfs.FzName, vfs.FxOpen = name, address(f.opening)
	ours := give(tls, vfs)
	if rc := sqlite3.Xsqlite3_vfs_register(tls, ours, 1); rc != 0 {
		t.Fatalf("register: %d", rc)
	}
	t.Cleanup(func() {
		f.opening, f.syncing = nil, nil // not before
		sqlite3.Xsqlite3_vfs_unregister(tls, ours)
		sqlite3.Xsqlite3_vfs_register(tls, real, 1)
		tls.Close() // what C has allocated stays: some bytes for each time
	})
}

// opens is the real call, after which the file has our table of methods.
func (f *flushes) opens(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32 {
	rc := f.open(tls, vfs, name, file, flags, out)
	table := at[uintptr](file)
	if rc != 0 || *table == 0 {
		return rc
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	ours, known := f.tables[*table]
	if !known {
		methods := *at[sqlite3.Tsqlite3_io_methods](*table)
		sync := function[syncCall](methods.FxSync)
		methods.FxSync = address(f.syncing)
		ours = give(tls, methods)
		f.tables[*table], f.syncs[ours] = ours, sync
	}
	f.paths[file] = ""
	if name != 0 {
		f.paths[file] = libc.GoString(name)
	}
	*table = ours
	return rc
}

// flushed is a flush, and what is told of it.
func (f *flushes) flushed(tls *libc.TLS, file uintptr, flags int32) int32 {
	f.mu.Lock()
	path, sync := f.paths[file], f.syncs[*at[uintptr](file)]
	f.mu.Unlock()
	done := f.flush(path)
	rc := sync(tls, file, flags)
	if rc == 0 {
		done()
	}
	return rc
}

// at is what C has at an address.
func at[T any](address uintptr) *T { return *(**T)(unsafe.Pointer(&address)) }

// give gives C a copy, for good.
func give[T any](tls *libc.TLS, v T) uintptr {
	address := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(v)))
	*at[T](address) = v
	return address
}

// function and address are how the translated C holds functions: as the address of a func value.
func function[F any](address uintptr) F { return *(*F)(unsafe.Pointer(&address)) }
func address[F any](f F) uintptr        { return *(*uintptr)(unsafe.Pointer(&f)) }
