package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// page is a page of Markdown that was read.
type page struct {
	path   string // from the root of the repository, with slashes
	source []byte
	root   ast.Node
}

// markdown is the dialect that the pages are written in: GitHub's, with an id for each heading.
func markdown() goldmark.Markdown {
	return goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
}

func readPage(repository, path string) (page, error) {
	b, err := os.ReadFile(filepath.Join(repository, filepath.FromSlash(path)))
	if err != nil {
		return page{}, err
	}
	return page{path: path, source: b, root: markdown().Parser().Parse(text.NewReader(b))}, nil
}

// each calls f for every node of one kind.
func each[T ast.Node](p page, f func(T)) {
	_ = ast.Walk(p.root, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // f has no errors
		if t, ok := n.(T); ok && entering {
			f(t)
		}
		return ast.WalkContinue, nil
	})
}

// words is what is read of a node, without its marks.
func (p page) words(n ast.Node) string {
	var b bytes.Buffer
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // writes to memory do not fail
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(p.source))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// title is the page's first heading.
func (p page) title() string {
	title := p.path
	each(p, func(h *ast.Heading) {
		if h.Level == 1 && title == p.path {
			title = p.words(h)
		}
	})
	return title
}

// ids are the anchors that a link to the page may name.
func (p page) ids() map[string]bool {
	ids := map[string]bool{}
	each(p, func(h *ast.Heading) {
		if id, ok := h.AttributeString("id"); ok {
			ids[string(id.([]byte))] = true
		}
	})
	return ids
}

// link is a link of a page, resolved.
type link struct {
	node   *ast.Link
	target string // from the root of the repository; empty for an address elsewhere
	anchor string
}

// links are the page's, less those to other hosts.
func (p page) links() ([]link, error) {
	var all []link
	var bad error
	each(p, func(n *ast.Link) {
		to := string(n.Destination)
		if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
			return
		}
		path, anchor, _ := strings.Cut(to, "#")
		target := p.path
		if path != "" {
			target = filepath.ToSlash(filepath.Join(filepath.Dir(p.path), path))
		}
		if strings.HasPrefix(target, "../") {
			bad = fmt.Errorf("%s: %s is outside of the repository", p.path, to)
		}
		all = append(all, link{node: n, target: target, anchor: anchor})
	})
	return all, bad
}
