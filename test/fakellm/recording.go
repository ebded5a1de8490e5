package fakellm

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Recording is a real answer of a provider, byte for byte.
type Recording struct {
	Name    string // the file's name without its ending
	Dialect string // openai_chat, openai_responses, anthropic, gemini, bedrock, bedrock_invoke, generic
	Path    string // path and query of a call that is answered like this
	Status  int
	Header  map[string][]string // less what belongs to the connection and the encoding
	Body    []byte
}

// Recordings reads the folder that SPOOL_CAPTURES names, by default the full set that lies beside
// the repository. Where there is none it reads the small set in test/testdata, except in CI, where
// the test fails.
func Recordings(tb testing.TB) []Recording {
	tb.Helper()
	root, err := repository()
	if err != nil {
		tb.Fatal(err)
	}
	dir := cmp.Or(os.Getenv("SPOOL_CAPTURES"), filepath.Join(root, "..", "shared", "captures", "real"))
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("CI") != "" {
			tb.Fatalf("recordings: %v", err)
		}
		dir = filepath.Join(root, "test", "testdata", "captures")
	}
	all, err := ReadRecordings(dir)
	if err != nil {
		tb.Fatal(err)
	}
	return all
}

// repository is the folder of go.mod, from wherever in it the test runs.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("repository: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("repository: no go.mod above the working directory")
		}
		dir = up
	}
}

// ReadRecordings reads every .sse and .eventstream file of a folder with its .headers.json, in the
// order of their names. A folder without any is an error.
func ReadRecordings(dir string) ([]Recording, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("recordings: %w", err)
	}
	var all []Recording
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext != ".sse" && ext != ".eventstream" {
			continue
		}
		r, err := readRecording(os.DirFS(dir), e.Name())
		if err != nil {
			return nil, fmt.Errorf("recording %s: %w", e.Name(), err)
		}
		all = append(all, r)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("recordings: none in %s", dir)
	}
	return all, nil
}

func readRecording(dir fs.FS, file string) (Recording, error) {
	r := Recording{Name: strings.TrimSuffix(file, filepath.Ext(file)), Header: make(map[string][]string)}
	body, err := fs.ReadFile(dir, file)
	if err != nil {
		return Recording{}, err
	}
	head, err := fs.ReadFile(dir, r.Name+".headers.json")
	if err != nil {
		return Recording{}, err
	}
	var meta struct {
		Request struct {
			URI string `json:"uri"`
		} `json:"request"`
		Status struct {
			Code int `json:"code"`
		} `json:"status"`
		Headers map[string]values `json:"headers"`
	}
	if err := json.Unmarshal(head, &meta); err != nil {
		return Recording{}, err
	}
	r.Body, r.Status = body, cmp.Or(meta.Status.Code, 200)
	for name, v := range meta.Headers {
		if !ofConnection(name) {
			r.Header[name] = v
		}
	}
	r.Dialect, r.Path = familyOf(r.Name, meta.Request.URI)
	return r, nil
}

// ofConnection is true of headers that described the recorded connection or its encoding: the body
// was stored decoded and is sent chunked.
func ofConnection(name string) bool {
	switch strings.ToLower(name) {
	case "content-length", "content-encoding", "transfer-encoding", "connection", "keep-alive":
		return true
	}
	return false
}

// familyOf tells dialect and path by the recording's name, provider-family-number. A family of no
// known dialect keeps the path it was recorded from.
func familyOf(name, uri string) (dialect, path string) {
	family := name[:max(0, strings.LastIndexByte(name, '-'))]
	is := func(suffix string) bool { return strings.HasSuffix(family, suffix) }
	switch {
	case is("cohere-chat"):
		return "generic", "/v2/chat"
	case is("_runs"):
		return "generic", "/v1/threads/x/runs"
	case is("-chat"):
		return "openai_chat", "/v1/chat/completions"
	case is("-completions"):
		return "openai_chat", "/v1/completions"
	case is("-responses"):
		return "openai_responses", "/v1/responses"
	case is("-messages"):
		return "anthropic", "/v1/messages"
	case is("-generate"):
		return "gemini", "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"
	case is("-converse"):
		return "bedrock", "/model/x/converse-stream"
	case is("-invoke"):
		return "bedrock_invoke", "/model/x/invoke-with-response-stream"
	}
	if u, err := url.Parse(uri); err == nil && u.Path != "" {
		return "generic", u.RequestURI()
	}
	return "generic", "/"
}

// recorded finds the recording that a first path segment names; opts is what follows its first comma.
func (s *Server) recorded(segment string) (r Recording, opts string, ok bool) {
	name, opts, _ := strings.Cut(segment, ",")
	r, ok = s.recordings[name]
	return r, opts, ok
}

// recordedChunk is how many bytes one chunk has where the path does not say.
const recordedChunk = 1024

// answer plays a recording: chunk=N bytes in a write, ms=N between two writes, cut=N resets after N
// bytes, end=N ends properly there.
func (r Recording) answer(opts string) []Op {
	size, pause, stop, last := recordedChunk, time.Duration(0), len(r.Body), Done()
	for opt := range strings.SplitSeq(opts, ",") {
		if opt == "" {
			continue
		}
		name, value, _ := strings.Cut(opt, "=")
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			return []Op{refusal(400, "recording: not a number: "+opt)}
		}
		switch name {
		case "chunk":
			size = max(1, n)
		case "ms":
			pause = millis(int64(n))
		case "cut":
			stop, last = min(n, len(r.Body)), RST()
		case "end":
			stop, last = min(n, len(r.Body)), Done()
		default:
			return []Op{refusal(400, "recording: unknown option "+opt)}
		}
	}
	head := Op{Kind: opHead, Status: r.Status, Headers: r.Header, Framing: framingChunked}
	body := Op{Kind: opCut, Data: r.Body[:stop], Size: size, Wait: pause}
	return []Op{head, body, last}
}
