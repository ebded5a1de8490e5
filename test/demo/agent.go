package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/spool-dev/spool/buffer/frame"
)

const (
	credential = "demo"
	question   = `{"model":"demo","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"What is a durable stream?"}]}`
	maxChunk   = 1 << 20
)

// agent asks with its key from the position to which its file goes, stores each event there before it
// prints its word. Killed at any line, it can be started again.
func agent(base, key, file string) error {
	req, err := http.NewRequest(http.MethodPost, base+"/openai/v1/chat/completions", strings.NewReader(question))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+credential)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	req.Header.Set("X-Buffer-From", strconv.FormatInt(position(file), 10))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", resp.Status)
	}
	log, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	events := frame.NewScanner(resp.Body, frame.SSE, maxChunk)
	for {
		event, err := events.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := log.Write(event); err != nil {
			return err
		}
		if word := wordIn(event); word != "" {
			fmt.Println(word)
		}
	}
}

// position is how many events are in the file; 0 at the agent's first start.
func position(file string) int64 {
	f, err := os.Open(file)
	if err != nil {
		return 0
	}
	defer f.Close()
	events, n := frame.NewScanner(f, frame.SSE, maxChunk), int64(0)
	for {
		if _, err := events.Next(); err != nil {
			return n
		}
		n++
	}
}

// wordIn is the text of one chat chunk; empty where it has none.
func wordIn(data []byte) string {
	var chunk struct {
		Choices []struct {
			Delta struct{ Content string }
		}
	}
	if json.Unmarshal(bytes.TrimPrefix(bytes.TrimSpace(data), []byte("data: ")), &chunk) != nil || len(chunk.Choices) == 0 {
		return ""
	}
	return chunk.Choices[0].Delta.Content
}

// wordReader reads the words that an agent prints, a line each.
type wordReader struct {
	lines *bufio.Scanner
	text  string
}

func newWordReader(r io.Reader) *wordReader { return &wordReader{lines: bufio.NewScanner(r)} }

func (w *wordReader) next() bool {
	ok := w.lines.Scan()
	w.text = w.lines.Text()
	return ok
}
