package main

import (
	"bytes"
	"fmt"
	"regexp"

	"github.com/yuin/goldmark/ast"
)

// block is a fenced block of code. Its first line says in what language it is, and, where it cannot be
// run by a test, why: ```sh norun="needs a cluster"
type block struct {
	language string
	norun    string
	code     string
	at       string // page:line
}

var infoLine = regexp.MustCompile(`^([a-z]+)(?: norun="([^"]+)")?$`)

// commands begin lines that people copy into a shell: they stand in fenced blocks, where they are run.
var commands = regexp.MustCompile(`(?m)^(\$ )?(curl|spool|bin/spool|make|docker|go|npm|npx|node|python3?|sqlite3|kubectl|helm|systemctl|pip) `)

// blocks are the page's, in order. Indented blocks are pictures, and no commands.
func (p page) blocks() (all []block, err error) {
	each(p, func(n *ast.FencedCodeBlock) {
		b := block{code: string(lines(n, p.source))}
		info := ""
		if n.Info != nil {
			info = string(n.Info.Segment.Value(p.source))
			b.at = p.at(n.Info.Segment.Start)
		}
		m := infoLine.FindStringSubmatch(info)
		if m == nil {
			err = fmt.Errorf("%s: a block begins with %q: want a language, and norun=\"REASON\" where it cannot be run", p.path+b.at, info)
			return
		}
		b.language, b.norun = m[1], m[2]
		all = append(all, b)
	})
	each(p, func(n *ast.CodeBlock) {
		if line := commands.Find(lines(n, p.source)); line != nil {
			err = fmt.Errorf("%s: an indented block has a command, %q…: fence it, so that it is run", p.path, line)
		}
	})
	return all, err
}

func lines(n ast.Node, source []byte) []byte {
	var b bytes.Buffer
	for i := range n.Lines().Len() {
		s := n.Lines().At(i)
		b.Write(s.Value(source))
	}
	return b.Bytes()
}

func (p page) at(offset int) string {
	return fmt.Sprintf("%s:%d", p.path, 1+bytes.Count(p.source[:offset], []byte("\n")))
}
