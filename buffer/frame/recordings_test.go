package frame_test

import (
	"encoding/binary"
	"encoding/csv"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spool-dev/spool/buffer/frame"
)

// recording is a real provider's body, and what its index says of it.
type recording struct {
	file        string
	contentType string
	blankLines  int
	data        []byte
}

// recordings reads the folder of SPOOL_CAPTURES, by default the one beside the checkout. Where there
// is none the few of testdata serve, but not in CI.
func recordings(t *testing.T) []recording {
	t.Helper()
	dir := os.Getenv("SPOOL_CAPTURES")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "captures", "real")
	}
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("CI needs all recordings: %v", err)
		}
		dir = filepath.Join("testdata", "recordings")
	}
	index, err := os.Open(filepath.Join(dir, "INDEX.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer index.Close()
	table := csv.NewReader(index)
	table.Comma, table.LazyQuotes = '\t', true
	rows, err := table.ReadAll()
	if err != nil {
		t.Fatal(err)
	}

	column := func(row []string, name string) string { return row[slices.Index(rows[0], name)] }
	var all []recording
	for _, row := range rows[1:] {
		r := recording{file: column(row, "file"), contentType: column(row, "content_type")}
		if r.blankLines, err = strconv.Atoi(column(row, "blank_line_terminators")); err != nil {
			t.Fatal(err)
		}
		if r.data, err = os.ReadFile(filepath.Join(dir, r.file)); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	if len(all) == 0 {
		t.Fatalf("no recordings in %s", dir)
	}
	return all
}

func TestScanner_CutsRealAnswers(t *testing.T) {
	for _, r := range recordings(t) {
		t.Run(r.file, func(t *testing.T) {
			t.Parallel()
			kind := frame.Detect(r.contentType, true)
			atOnce := scan(t, &script{data: r.data}, kind, 0)
			for _, size := range []int{1, 7, 37} {
				got := scan(t, &script{data: r.data, size: bySize(size)}, kind, 0)
				wantSame(t, strconv.Itoa(size)+" bytes a read", got, atOnce)
			}
			if atOnce.err != io.EOF || atOnce.partial != "" {
				t.Fatalf("ends with %v and partial %q", atOnce.err, atOnce.partial)
			}
			switch kind {
			case frame.SSE:
				checkEvents(t, r, atOnce.chunks)
			case frame.AWS:
				checkMessages(t, r.data, atOnce.chunks)
			default:
				t.Fatalf("no check for %s", kind)
			}
		})
	}
}

// checkEvents compares the count with the index's, and the events of the chunks, each parsed by
// itself, with those of the body.
func checkEvents(t *testing.T, r recording, chunks []string) {
	t.Helper()
	want := r.blankLines
	if ends := blankLines(r.data); ends[len(ends)-1] < len(r.data) {
		want++ // a tail without its blank line
	}
	if len(chunks) != want {
		t.Errorf("%d chunks, want %d", len(chunks), want)
	}
	var events []event
	for _, c := range chunks {
		events = append(events, parseEvents(c)...)
	}
	if body := parseEvents(string(r.data)); !slices.Equal(events, body) || len(body) == 0 {
		t.Errorf("chunks have %d events, the body has %d, or others", len(events), len(body))
	}
}

type event struct{ name, data string }

// parseEvents is the parser of the HTML standard, section 9.2.6, less id and retry.
func parseEvents(body string) []event {
	var events []event
	var now event
	var data []string
	for _, line := range lineEnds.Split(strings.TrimPrefix(body, "\ufeff"), -1) {
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if len(data) > 0 {
				now.data = strings.Join(data, "\n")
				events = append(events, now)
			}
			now, data = event{}, nil
		case field == "event":
			now.name = value
		case field == "data":
			data = append(data, value)
		}
	}
	return events
}

// checkMessages walks the body by its lengths, and verifies each chunk by the checksum at its end.
func checkMessages(t *testing.T, body []byte, chunks []string) {
	t.Helper()
	for i, c := range chunks {
		size := binary.BigEndian.Uint32(body)
		if uint32(len(c)) != size {
			t.Fatalf("message %d has %d bytes, want %d", i, len(c), size)
		}
		end := len(c) - 4
		if crc32.ChecksumIEEE([]byte(c[:end])) != binary.BigEndian.Uint32([]byte(c[end:])) {
			t.Fatalf("message %d has a bad checksum", i)
		}
		body = body[size:]
	}
	if len(body) > 0 || len(chunks) == 0 {
		t.Fatalf("%d chunks leave %d bytes", len(chunks), len(body))
	}
}

func TestScanner_CutShortAnywhereKeepsWhatWasWhole(t *testing.T) {
	for _, r := range recordings(t) {
		if len(r.data) > 6000 {
			continue // every cut of a small one says it all
		}
		kind := frame.Detect(r.contentType, true)
		full := scan(t, &script{data: r.data}, kind, 0).chunks
		for n := 0; n < len(r.data); n += 13 {
			got := scan(t, &script{data: r.data[:n], end: errReset}, kind, 0)
			whole := wholeBefore(full, n)
			if len(got.chunks) < whole || len(got.chunks) > whole+1 || !slices.Equal(got.chunks[:whole], full[:whole]) {
				t.Fatalf("%s cut at %d: %d chunks, want the first %d and at most a tail", r.file, n, len(got.chunks), whole)
			}
		}
	}
}

// wholeBefore counts the chunks that end within the first n bytes.
func wholeBefore(chunks []string, n int) int {
	for i, c := range chunks {
		if n -= len(c); n < 0 {
			return i
		}
	}
	return len(chunks)
}
