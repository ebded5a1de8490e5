package sqlite

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

// What was changed in the file is an error, and never other bytes.
func TestEncryption_TamperedRows(t *testing.T) {
	for name, test := range map[string]struct {
		query string
		call  bool // it is the call that cannot be read, not the chunks
	}{
		"flipped bit":             {query: `UPDATE segments SET data = cast(iif(substr(data, 1, 1) = X'00', X'01', X'00') || substr(data, 2) AS BLOB) WHERE run = 1`},
		"flipped bit of the tag":  {query: `UPDATE segments SET cipher = cast(substr(cipher, 1, 27) || iif(substr(cipher, 28) = X'00', X'01', X'00') AS BLOB) WHERE run = 1`},
		"chunks of another run":   {query: `UPDATE segments SET (data, cipher) = (SELECT data, cipher FROM segments WHERE run = 2) WHERE run = 1`},
		"another place":           {query: `UPDATE segments SET start = 1 WHERE run = 1`},
		"other sizes":             {query: `UPDATE segments SET sizes = '[' || (json_extract(sizes, '$[0]') + 1) || ',' || (json_extract(sizes, '$[1]') - 1) || ',' || json_extract(sizes, '$[2]') || ']' WHERE run = 1`},
		"said to be in the clear": {query: `UPDATE segments SET cipher = NULL WHERE run = 1`},
		"no data key":             {query: `DELETE FROM ciphers WHERE run = 1`},
		"data key destroyed":      {query: `UPDATE ciphers SET wrapped = NULL WHERE run = 1`, call: true},
		"data key emptied":        {query: `UPDATE ciphers SET wrapped = x'' WHERE run = 1`, call: true},
		"data key cut":            {query: `UPDATE ciphers SET wrapped = substr(wrapped, 1, 20) WHERE run = 1`, call: true},
		"another's data key":      {query: `UPDATE ciphers SET wrapped = (SELECT wrapped FROM ciphers WHERE run = 2) WHERE run = 1`},
		"another's header":        {query: `UPDATE ciphers SET header = (SELECT header FROM ciphers WHERE run = 2) WHERE run = 1`, call: true},
		"header as partial":       {query: `UPDATE ciphers SET partial = header WHERE run = 1`, call: true},
		"a usage in the clear":    {query: `UPDATE calls SET usage = '{}' WHERE run = 1`, call: true},
		"a header in the clear":   {query: `UPDATE calls SET header = '{}' WHERE run = 1`, call: true},
		"a partial in the clear":  {query: `UPDATE calls SET partial = x'00' WHERE run = 1`, call: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openHidden(t, dir, key("one"))
			r, other := told(t, s, buffer.Interrupted), told(t, s, buffer.Interrupted)
			must(t, s.Close())
			execute(t, dir, test.query)
			s = openHidden(t, dir, key("one"))
			_, getErr := s.Get(t.Context(), r.ID)
			page, err := s.Read(t.Context(), r.ID, 0, 1<<20)
			if err == nil || len(page.Chunks) > 0 || test.call && getErr == nil {
				t.Errorf("read gave %d chunks, error %v; get gave error %v", len(page.Chunks), err, getErr)
			}
			wantTold(t, s, other.ID)
			faults, err := Check(t.Context(), dir, key("one"))
			must(t, err)
			if !slices.ContainsFunc(faults, func(f string) bool { return strings.Contains(f, r.ID.String()) }) {
				t.Errorf("the check says %q", faults)
			}
			wantBothGoOn(t, s, r.ID, other.ID)
			must(t, s.Close())
		})
	}
}

// wantBothGoOn checks that a damaged run keeps no other from being listed, and that its time ends as another's does.
func wantBothGoOn(t *testing.T, s *Store, ids ...ulid.ULID) {
	t.Helper()
	var listed []ulid.ULID
	for r, err := range s.List(t.Context(), buffer.Filter{}) {
		must(t, err)
		listed = append(listed, r.ID)
	}
	slices.SortFunc(listed, ulid.ULID.Compare)
	slices.SortFunc(ids, ulid.ULID.Compare)
	if !slices.Equal(listed, ids) {
		t.Errorf("listed are %v, want %v", listed, ids)
	}
	swept, err := s.Sweep(t.Context(), time.Now().Add(48*time.Hour), nil)
	must(t, err)
	if want := (buffer.Swept{Released: 2, Chunks: 6, Forgotten: 2}); swept != want {
		t.Errorf("swept are %+v, want %+v", swept, want)
	}
}

// Arrivals of a live run that were changed are damaged: recovery keeps what is before them.
func TestEncryption_TamperedArrival(t *testing.T) {
	dir := t.TempDir()
	s := openHidden(t, dir, key("one"))
	s.writer.arrivals.limit, s.window.limit = 1<<20, 1<<20
	log, r := started(t, s)
	for _, data := range []string{"first", "second"} {
		must(t, log.Append(t.Context(), [][]byte{[]byte(data)}, buffer.Streaming, buffer.Closing{}))
	}
	must(t, s.Close())
	execute(t, dir, `UPDATE arrivals SET data = X'00' WHERE pos = 1`)
	s = openHidden(t, dir, key("one"))
	_, err := s.Recover(t.Context())
	must(t, err)
	page, err := s.Read(t.Context(), r.ID, 0, 1<<20)
	if err != nil || len(page.Chunks) != 1 || string(page.Chunks[0].Data) != "first" {
		t.Errorf("recovered %v, error %v", page.Chunks, err)
	}
	must(t, s.Close())
	wantSound(t, dir, key("one"))
}
