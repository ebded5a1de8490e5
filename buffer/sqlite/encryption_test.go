package sqlite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/pressly/goose/v3"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/migrations"
)

// key is the key of that name that every test has.
func key(name string) Key {
	b := sha256.Sum256([]byte(name))
	return Key{Name: name, Bytes: b[:]}
}

// openHidden opens a store that reads everything from the file.
func openHidden(t testing.TB, dir string, keys ...Key) *Store {
	t.Helper()
	return openStore(t, Config{Dir: dir, lazy: true, Window: -1, Keys: keys})
}

// planted is what must be nowhere, in every place that an answer has.
const planted = "PLANTED-7c1f"

func told(t testing.TB, s *Store, end buffer.State) buffer.Run {
	t.Helper()
	log, r := started(t, s)
	usage := &provider.Usage{InputTokens: 1, OutputTokens: 2, Raw: []byte(`{"of":"` + planted + `"}`)}
	must(t, log.Append(t.Context(), [][]byte{[]byte("data: " + planted + " 0\n\n"), []byte("data: " + planted + " 1\n\n")},
		buffer.Streaming, buffer.Closing{Status: 200, Header: http.Header{"X-Answer": {planted}}}))
	must(t, log.Append(t.Context(), [][]byte{[]byte("data: " + planted + " 2\n\n")}, end, buffer.Closing{
		Partial: []byte("data: " + planted), Usage: usage,
		Attempt: &buffer.Attempt{N: 1, Sent: r.Created, Ended: r.Created, Usage: usage},
	}))
	return r
}

// wantTold checks that a run is as told has made it.
func wantTold(t *testing.T, s reader, id ulid.ULID) {
	t.Helper()
	r, err := s.Get(t.Context(), id)
	must(t, err)
	page, err := s.Read(t.Context(), id, 0, 1<<20)
	must(t, err)
	if len(page.Chunks) != 3 || string(page.Chunks[2].Data) != "data: "+planted+" 2\n\n" {
		t.Errorf("chunks are %v", page.Chunks)
	}
	usage := `{"of":"` + planted + `"}`
	if r.Header.Get("X-Answer") != planted || string(r.Partial) != "data: "+planted || string(r.Usage.Raw) != usage || string(r.Attempts[0].Usage.Raw) != usage {
		t.Errorf("the run is %+v", r)
	}
}

// reader is a Store or a Reader.
type reader interface {
	Get(ctx context.Context, id ulid.ULID) (buffer.Run, error)
	Read(ctx context.Context, id ulid.ULID, from int64, max int) (buffer.Page, error)
}

// filesWith are the files below the folders that hold the text, also as hex, or base64 of its beginning.
func filesWith(t *testing.T, text string, dirs ...string) (found []string) {
	t.Helper()
	files := 0
	for _, dir := range dirs {
		must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			b, err := os.ReadFile(path)
			if bytes.Contains(b, []byte(text)) || bytes.Contains(b, []byte(hex.EncodeToString([]byte(text)))) {
				found = append(found, filepath.Base(path))
			}
			files++
			return err
		}))
	}
	if files == 0 {
		t.Fatal("there are no files")
	}
	return found
}

func TestEncryption_NothingOfAnAnswerIsInAnyFile(t *testing.T) {
	for name, test := range map[string]struct {
		keys []Key
		want bool
	}{
		"encrypted":    {[]Key{key("one")}, false},
		"in the clear": {nil, true}, // else the search finds nothing ever
	} {
		t.Run(name, func(t *testing.T) {
			dir, copies := t.TempDir(), t.TempDir()
			s := openHidden(t, dir, test.keys...)
			ended, live := told(t, s, buffer.Interrupted), told(t, s, buffer.Streaming)
			_, err := Backup(t.Context(), dir, filepath.Join(copies, "live.db"), nil, test.keys...)
			must(t, err)
			if found := filesWith(t, planted, dir, copies); (len(found) > 0) != test.want {
				t.Errorf("while it is open the text is in %v", found)
			}
			wantTold(t, s, ended.ID)
			wantTold(t, s, live.ID)
			must(t, s.Close())
			s = openHidden(t, dir, test.keys...)
			_, err = s.Recover(t.Context())
			must(t, err)
			wantTold(t, s, live.ID)
			must(t, s.Close())
			_, err = Compact(t.Context(), dir, nil, test.keys...)
			must(t, err)
			if found := filesWith(t, planted, dir, copies); (len(found) > 0) != test.want {
				t.Errorf("after its close the text is in %v", found)
			}
			wantSound(t, dir, test.keys...)
		})
	}
}

// A log in the clear goes on when keys are configured: its runs stay as they are, new ones are encrypted.
func TestEncryption_BeginsInALogInTheClear(t *testing.T) {
	dir := t.TempDir()
	s := openHidden(t, dir)
	clear := told(t, s, buffer.Interrupted)
	must(t, s.Close())
	s = openHidden(t, dir, key("one"))
	hidden := told(t, s, buffer.Interrupted)
	wantTold(t, s, clear.ID)
	wantTold(t, s, hidden.ID)
	for id, want := range map[ulid.ULID]string{clear.ID: "", hidden.ID: "one"} {
		if r, err := s.Get(t.Context(), id); err != nil || r.EncryptedWith != want {
			t.Errorf("run %s is encrypted with %q, want %q, error %v", id, r.EncryptedWith, want, err)
		}
	}
	var shown, hiddenRows int
	must(t, s.read.QueryRowContext(t.Context(), `SELECT count(data), count(*) FILTER (WHERE data IS NULL AND encrypted = 'one') FROM log`).Scan(&shown, &hiddenRows))
	if shown != 3 || hiddenRows != 3 {
		t.Errorf("the view shows %d chunks and hides %d, want 3 and 3", shown, hiddenRows)
	}
	must(t, s.Close())
	wantSound(t, dir)
	wantSound(t, dir, key("one"))
}

// A key may go when no run needs it: those that it has encrypted are released and swept.
func TestEncryption_Rotation(t *testing.T) {
	dir := t.TempDir()
	s := openHidden(t, dir, key("old"))
	before := told(t, s, buffer.Interrupted)
	must(t, s.Close())

	s = openHidden(t, dir, key("new"), key("old"))
	after := told(t, s, buffer.Interrupted)
	wantTold(t, s, before.ID)
	must(t, s.Close())
	for name, keys := range map[string][]Key{
		"none":              nil,
		"only the new one":  {key("new")},
		"another, its name": {key("new"), {Name: "old", Bytes: key("other").Bytes}},
	} {
		s, err := Open(t.Context(), Config{Dir: dir, lazy: true, Keys: keys})
		if !errors.Is(err, ErrKey) || !strings.Contains(err.Error(), `"old" (1 runs)`) {
			t.Errorf("%s: got error %v", name, err)
		}
		if err == nil {
			must(t, s.Close())
		}
	}

	s = openHidden(t, dir, key("new"), key("old"))
	_, err := s.Release(t.Context(), before.ID)
	must(t, err)
	_, err = s.Sweep(t.Context(), time.Unix(0, 0), nil) // the other one's time is not over
	must(t, err)
	must(t, s.Close())
	s = openHidden(t, dir, key("new"))
	wantTold(t, s, after.ID)
	if r, err := s.Get(t.Context(), before.ID); err != nil || r.State != buffer.Released || r.Usage.OutputTokens != 2 {
		t.Errorf("the tombstone is %+v, error %v", r, err)
	}
	must(t, s.Close())
	wantSound(t, dir, key("new"))
}

// A released run's data key is gone from the log, also where its chunks are still being deleted.
func TestEncryption_ReleaseDestroysTheDataKey(t *testing.T) {
	dir := t.TempDir()
	s := openHidden(t, dir, key("one"))
	r := told(t, s, buffer.Interrupted)
	var wrapped []byte
	must(t, s.read.QueryRowContext(t.Context(), "SELECT wrapped FROM ciphers").Scan(&wrapped))
	must(t, s.check.copy())
	if len(filesWith(t, string(wrapped), dir)) == 0 {
		t.Fatal("the search does not find the data key while it is there")
	}
	_, err := s.Release(t.Context(), r.ID)
	must(t, err)
	wantTold(t, s, r.ID) // who is reading gets to the end
	var row int64
	must(t, s.read.QueryRowContext(t.Context(), "SELECT run FROM ciphers").Scan(&row))
	must(t, s.queue.do(t.Context(), destroyOnly{row}, 0, 0))
	if page, err := s.Read(t.Context(), r.ID, 0, 1<<20); !errors.Is(err, buffer.ErrReleased) || len(page.Chunks) > 0 {
		t.Errorf("read without the key: %d chunks, error %v", len(page.Chunks), err)
	}
	_, err = s.Sweep(t.Context(), time.Now(), nil)
	must(t, err)
	must(t, s.Close())
	if found := filesWith(t, string(wrapped), dir); len(found) > 0 {
		t.Errorf("the data key is still in %v", found)
	}
	wantSound(t, dir, key("one"))
}

// destroyOnly is the first statement of a sweep's step: a crash cannot leave it alone, a sweep in steps does.
type destroyOnly struct{ row int64 }

func (o destroyOnly) apply(t *tx) (refusal, err error) {
	_, err = t.exec(destroyKey, o.row)
	return nil, err
}

// From outside all of a run can be told without its key but its answer.
func TestEncryption_ReaderWithoutTheKey(t *testing.T) {
	dir := t.TempDir()
	s := openHidden(t, dir, key("one"))
	r := told(t, s, buffer.Interrupted)
	must(t, s.Close())
	with, err := OpenReader(t.Context(), dir, key("one"))
	must(t, err)
	wantTold(t, with, r.ID)
	must(t, with.Close())

	without, err := OpenReader(t.Context(), dir)
	must(t, err)
	got, err := without.Get(t.Context(), r.ID)
	if err != nil || got.EncryptedWith != "one" || got.Head != 3 || got.Header != nil || got.Partial != nil || got.Usage.Raw != nil {
		t.Errorf("the run is %+v, error %v", got, err)
	}
	for listed, err := range without.List(t.Context(), buffer.Filter{}) {
		if err != nil || listed.EncryptedWith != "one" {
			t.Errorf("listed is %+v, error %v", listed, err)
		}
	}
	page, err := without.Read(t.Context(), r.ID, 0, 1<<20)
	if !errors.Is(err, ErrKey) || !strings.Contains(err.Error(), `"one"`) || len(page.Chunks) > 0 {
		t.Errorf("read %d chunks, error %v", len(page.Chunks), err)
	}
	must(t, without.Close())
	wantSound(t, dir)
	about, err := Look(t.Context(), dir)
	if err != nil || about.Keys["one"] != 1 {
		t.Errorf("about the log: %+v, error %v", about, err)
	}
}

func TestEncryption_KeysThatAreNone(t *testing.T) {
	for name, keys := range map[string][]Key{
		"short":        {{Name: "one", Bytes: make([]byte, 16)}},
		"nameless":     {{Bytes: make([]byte, KeySize)}},
		"the same two": {key("one"), key("one")},
	} {
		dir := filepath.Join(t.TempDir(), "new")
		if _, err := Open(t.Context(), Config{Dir: dir, Keys: keys}); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
}

// A nonce is never the same, whatever is encrypted where.
func TestEncryption_NoncesDiffer(t *testing.T) {
	dir := t.TempDir()
	s := openHidden(t, dir, key("one"))
	log, _ := started(t, s)
	for range 200 {
		must(t, log.Append(t.Context(), [][]byte{[]byte("the same")}, buffer.Streaming, buffer.Closing{}))
	}
	must(t, log.Append(t.Context(), nil, buffer.Completed, buffer.Closing{}))
	var rows, nonces sql.NullInt64
	must(t, s.read.QueryRowContext(t.Context(), `SELECT count(*), count(DISTINCT substr(cipher, 1, 12)) FROM
		(SELECT cipher FROM segments UNION ALL SELECT cipher FROM arrivals WHERE length(data) > 0)`).Scan(&rows, &nonces))
	if rows.Int64 == 0 || rows != nonces {
		t.Errorf("%d rows have %d nonces", rows.Int64, nonces.Int64)
	}
	must(t, s.Close())
}

// A log of the first schema, which knew no encryption, is brought up to date and goes on.
func TestEncryption_ALogOfBeforeGoesOn(t *testing.T) {
	dir := t.TempDir()
	db := openPool(filepath.Join(dir, fileName), 1, fixerPragmas("off"))
	p, err := goose.NewProvider(goose.DialectSQLite3, db, migrations.FS)
	must(t, err)
	_, err = p.UpTo(t.Context(), firstEncrypted-1)
	must(t, err)
	must(t, db.Close())
	id := ulid.Make()
	for _, query := range []string{
		`INSERT INTO owners (started) VALUES (1)`,
		`INSERT INTO runs (run, id, caller, owner, state, ttl, created) VALUES (1, '` + id.String() + `', 'c', 1, 'streaming', 1, 1)`,
		`INSERT INTO calls (run, key, body_hash, retry_of, method, path, provider, route, dialect, model, stream, kind, operation, turn, tags,
			budget_attempts, budget_elapsed, budget_cost, budget_spent, header) VALUES (1, '', '', '', '', '', '', '', '', '', 0, '', '', '', '{}', 1, 1, 0, 0, '{"X":["y"]}')`,
		`INSERT INTO attempts (run, n, route, model, sent, status, request_id, class, sent_state, action, why, hint, first_byte, billed, reused_conn,
			request_bytes, preamble_bytes, content_bytes) VALUES (1, 1, '', '', 1, 0, '', '', '', '', '', 0, 0, 'unknown', 0, 0, 0, 0)`,
		`INSERT INTO arrivals (run, pos, start, sizes, data) VALUES (1, 0, 0, '[1,2]', X'616262')`,
	} {
		execute(t, dir, query)
	}
	s := openHidden(t, dir, key("one"))
	_, err = s.Recover(t.Context())
	must(t, err)
	r, err := s.Get(t.Context(), id)
	must(t, err)
	page, err := s.Read(t.Context(), id, 0, 1<<20)
	must(t, err)
	if r.State != buffer.Interrupted || r.EncryptedWith != "" || r.Header.Get("X") != "y" || len(page.Chunks) != 2 || string(page.Chunks[1].Data) != "bb" {
		t.Errorf("the run is %+v, its chunks %v", r, page.Chunks)
	}
	hidden := told(t, s, buffer.Interrupted)
	wantTold(t, s, hidden.ID)
	must(t, s.Close())
	wantSound(t, dir, key("one"))
}
