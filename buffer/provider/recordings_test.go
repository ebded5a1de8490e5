package provider

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spool-dev/spool/buffer/frame"
)

// recording is what a provider really sent.
type recording struct {
	name    string
	dialect Dialect
	kind    frame.Kind
	body    []byte
}

// failedRecordings are the ones in which the provider told an error of its own.
var failedRecordings = []string{"groq-chat-004", "groq-chat-007", "openrouter-chat-001"}

// recordings reads all recordings of the folder that SPOOL_CAPTURES names. Without that folder a few
// small ones serve, but not in CI.
func recordings(t testing.TB) []recording {
	t.Helper()
	dir := os.Getenv("SPOOL_CAPTURES")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "captures", "real")
	}
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("recordings: %v", err)
		}
		dir = filepath.Join("testdata", "recordings")
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []recording
	for _, f := range files {
		kind := map[string]frame.Kind{".sse": frame.SSE, ".eventstream": frame.AWS}[filepath.Ext(f.Name())]
		if kind == "" {
			continue
		}
		body, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(f.Name(), filepath.Ext(f.Name()))
		all = append(all, recording{name, recordedDialect(name), kind, body})
	}
	if len(all) == 0 {
		t.Fatalf("no recordings in %s", dir)
	}
	return all
}

func recordedDialect(name string) Dialect {
	for _, known := range []struct {
		mark    string
		dialect Dialect
	}{
		{"cohere-", Generic},
		{"_runs-", Generic},
		{"-converse-", Bedrock},
		{"-invoke-", BedrockInvoke},
		{"-messages-", Anthropic},
		{"-generate-", Gemini},
		{"-responses-", OpenAIResponses},
	} {
		if strings.Contains(name, known.mark) {
			return known.dialect
		}
	}
	return OpenAIChat
}

func (r recording) chunks(t testing.TB) [][]byte {
	t.Helper()
	s := frame.NewScanner(bytes.NewReader(r.body), r.kind, 0)
	var chunks [][]byte
	for {
		chunk, err := s.Next()
		if errors.Is(err, io.EOF) {
			return chunks
		}
		if err != nil {
			t.Fatal(err)
		}
		chunks = append(chunks, chunk)
	}
}

func (r recording) failed() bool { return slices.Contains(failedRecordings, r.name) }

func TestReader_Recordings(t *testing.T) {
	figures := regexp.MustCompile(`"(usage|usageMetadata)": ?\{`)
	for _, rec := range recordings(t) {
		t.Run(rec.name, func(t *testing.T) {
			r := NewReader(rec.dialect, rec.kind, true)
			var sum Mark
			for _, chunk := range rec.chunks(t) {
				m := r.Read(chunk)
				sum.Content, sum.Failed = sum.Content || m.Content, sum.Failed || m.Failed
			}
			v := r.Verdict(true)
			if !sum.Content {
				t.Error("no content")
			}
			if rec.failed() {
				if v.Proven || !sum.Failed || !bytes.Contains(v.Failure, []byte(`"error"`)) {
					t.Errorf("the provider's error was not seen: %+v", v)
				}
				return
			}
			if !v.Proven || sum.Failed || v.Failure != nil {
				t.Fatalf("not proven: %+v", v)
			}
			if rec.dialect != Generic && strings.Contains(strings.Join(v.Notes, " "), noteWeak) {
				t.Errorf("notes %v for a protocol that is known", v.Notes)
			}
			if (figures.Match(rec.body) || rec.kind == frame.AWS) && (v.Usage == nil || v.Usage.OutputTokens == 0) {
				t.Errorf("usage %+v", v.Usage)
			}
			if rec.kind == frame.SSE && rec.dialect != Generic && (v.ProviderID == "" || v.Model == "") {
				t.Errorf("id %q, model %q", v.ProviderID, v.Model)
			}
		})
	}
}

// TestReader_RecordingsCutBeforeTheProof takes every prefix of every recording that ends before the
// first chunk in which the proof could be.
func TestReader_RecordingsCutBeforeTheProof(t *testing.T) {
	proofs := map[Dialect][]string{
		OpenAIChat:      {`"finish_reason":"`, `"finish_reason": "`, `[DONE]`},
		OpenAIResponses: {`"response.completed"`, `"response.incomplete"`},
		Anthropic:       {`"stop_reason":"`, `"stop_reason": "`},
		Gemini:          {`"finishReason":"`, `"finishReason": "`},
		Bedrock:         {`messageStop`},
	}
	for _, rec := range recordings(t) {
		proof := proofs[rec.dialect]
		if proof == nil {
			continue
		}
		t.Run(rec.name, func(t *testing.T) {
			r := NewReader(rec.dialect, rec.kind, true)
			for i, chunk := range rec.chunks(t) {
				if slices.ContainsFunc(proof, func(p string) bool { return strings.Contains(view(chunk), p) }) {
					return
				}
				if m := r.Read(chunk); m.Finish || m.Final {
					t.Fatalf("chunk %d marks %+v", i, m)
				}
				if r.Verdict(true).Proven {
					t.Fatalf("proven after chunk %d", i)
				}
			}
		})
	}
}

// BenchmarkReader_Recordings reads whole answers over and over: the bytes a second of each dialect.
func BenchmarkReader_Recordings(b *testing.B) {
	seen := make(map[Dialect]bool)
	for _, rec := range recordings(b) {
		if seen[rec.dialect] {
			continue
		}
		seen[rec.dialect] = true
		chunks := rec.chunks(b)
		b.Run(string(rec.dialect), func(b *testing.B) {
			b.SetBytes(int64(len(rec.body)))
			b.ReportAllocs()
			for b.Loop() {
				r := NewReader(rec.dialect, rec.kind, true)
				for _, chunk := range chunks {
					r.Read(chunk)
				}
			}
		})
	}
}
