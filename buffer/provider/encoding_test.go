package provider

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"testing"
)

func TestPlainBody_UndoesGzipAsItComes(t *testing.T) {
	pr, pw := io.Pipe()
	body := plainBody(http.Header{"Content-Encoding": {"gzip"}}, pr)
	zip := gzip.NewWriter(pw)
	p := make([]byte, 64)
	send := make(chan string)
	go func() { // errors of these writes are seen by the reads below
		for event := range send {
			_, _ = zip.Write([]byte(event))
			_ = zip.Flush()
		}
		_ = zip.Close()
		_ = pw.Close()
	}()
	for _, event := range []string{"data: 1\n\n", "data: 2\n\n"} {
		send <- event
		n, err := body.Read(p)
		for n == 0 && err == nil {
			n, err = body.Read(p)
		}
		if err != nil || string(p[:n]) != event {
			t.Fatalf("%q, %v, want %q", p[:n], err, event)
		}
	}
	close(send)
	if rest, err := io.ReadAll(body); err != nil || len(rest) != 0 {
		t.Errorf("%q, %v", rest, err)
	}
}

func TestPlainBody_ACutOneIsNoCleanEnd(t *testing.T) {
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	_, _ = zip.Write([]byte("data: 1\n\n")) // into memory
	_ = zip.Close()
	h := http.Header{"Content-Encoding": {"gzip"}}
	_, err := io.ReadAll(plainBody(h, io.NopCloser(bytes.NewReader(b.Bytes()[:b.Len()-4]))))
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v, want an unexpected end", err)
	}
	if h.Get("Content-Encoding") != "" {
		t.Error("the header still announces gzip")
	}
}
