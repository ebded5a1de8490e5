package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spool-dev/spool/buffer/frame"
)

// screen tells the story: in colour on a terminal, plain elsewhere.
type screen struct {
	out    io.Writer
	colour bool
	column int
	wrong  []string // facts that were not as promised
}

const width = 96

func newScreen(f *os.File) screen {
	info, err := f.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return screen{out: f, colour: terminal}
}

func (s *screen) paint(code, text string) string {
	if !s.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s *screen) line() {
	if s.column > 0 {
		fmt.Fprintln(s.out)
		s.column = 0
	}
}

func (s *screen) title(text string) {
	s.line()
	fmt.Fprintf(s.out, "\n%s\n", s.paint("1", text))
}

func (s *screen) note(format string, args ...any) {
	s.line()
	fmt.Fprintln(s.out, s.paint("2", "· "+fmt.Sprintf(format, args...)))
}

// word shows a word of the answer as it comes.
func (s *screen) word(text string) {
	if s.column+len(text) > width {
		s.line()
	}
	if s.column == 0 {
		fmt.Fprint(s.out, "  ")
	}
	s.column += len(text)
	fmt.Fprint(s.out, s.paint("36", text))
}

// words shows the words of a stored stream.
func (s *screen) words(stream []byte) {
	events := frame.NewScanner(bytes.NewReader(stream), frame.SSE, maxChunk)
	for {
		event, err := events.Next()
		if err != nil {
			return
		}
		if word := wordIn(event); word != "" {
			s.word(word)
		}
	}
}

func (s *screen) cut(what string) {
	fmt.Fprintln(s.out, " "+s.paint("1;31", "✂ "+what))
	s.column = 0
}

// fact shows what was seen beside what was promised.
func (s *screen) fact(name string, seen, promised any) {
	s.line()
	mark := s.paint("1;32", "✓")
	if fmt.Sprint(seen) != fmt.Sprint(promised) {
		mark = s.paint("1;31", "✗")
		s.wrong = append(s.wrong, fmt.Sprintf("%s: %v, promised %v", name, seen, promised))
	}
	fmt.Fprintf(s.out, "%s %s: %v\n", mark, name, seen)
}

// verdict fails the demo if a fact was not as promised.
func (s *screen) verdict() error {
	if len(s.wrong) == 0 {
		return nil
	}
	return errors.New(s.wrong[0])
}

func yes(ok bool) string {
	if ok {
		return "yes"
	}
	return "no"
}
