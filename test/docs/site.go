package main

import (
	"bytes"
	_ "embed"
	"html/template"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/renderer/html"
)

const (
	contents  = "docs/README.md"                                // the page that lists the others
	elsewhere = "https://github.com/spool-dev/spool/blob/main/" // where files are that are no pages
)

//go:embed page.html
var layout string

//go:embed style.css
var style []byte

// build writes the site of a repository's docs/ into a folder, and returns how many pages it has.
func build(repository, folder string) (int, error) {
	paths, err := pagePaths(repository)
	if err != nil {
		return 0, err
	}
	index, err := readPage(repository, contents)
	if err != nil {
		return 0, err
	}
	menu, err := sections(index)
	if err != nil {
		return 0, err
	}
	shape, err := template.New("page").Parse(layout)
	if err != nil {
		return 0, err
	}
	if err := write(filepath.Join(folder, "style.css"), style); err != nil {
		return 0, err
	}
	for _, path := range paths {
		p, err := readPage(repository, path)
		if err != nil {
			return 0, err
		}
		b, err := p.html(shape, menu)
		if err != nil {
			return 0, err
		}
		if err := write(filepath.Join(folder, filepath.FromSlash(address(path))), b); err != nil {
			return 0, err
		}
	}
	return len(paths), nil
}

// pagePaths are all pages below docs/.
func pagePaths(repository string) ([]string, error) {
	var paths []string
	err := filepath.WalkDir(filepath.Join(repository, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" {
			path, err = filepath.Rel(repository, path)
			paths = append(paths, filepath.ToSlash(path))
		}
		return err
	})
	return paths, err
}

// address is where a page is in the site.
func address(path string) string {
	path = strings.TrimPrefix(path, "docs/")
	if path == "README.md" {
		return "index.html"
	}
	return strings.TrimSuffix(path, ".md") + ".html"
}

// section is a part of the contents.
type section struct {
	Name  string
	Items []item
}

type item struct {
	Name, Path string
	Here       bool
}

// sections are the headings of the contents and the pages that are linked below each.
func sections(index page) ([]section, error) {
	links, err := index.links()
	if err != nil {
		return nil, err
	}
	var all []section
	err = ast.Walk(index.root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if h, ok := n.(*ast.Heading); ok && entering && h.Level == 2 {
			all = append(all, section{Name: index.words(h)})
		}
		if l, ok := n.(*ast.Link); ok && entering && len(all) > 0 {
			i := slices.IndexFunc(links, func(k link) bool { return k.node == l })
			if i >= 0 && isPage(links[i].target) {
				last := &all[len(all)-1]
				last.Items = append(last.Items, item{Name: index.words(l), Path: links[i].target})
			}
		}
		return ast.WalkContinue, nil
	})
	return all, err
}

func isPage(path string) bool { return strings.HasPrefix(path, "docs/") && filepath.Ext(path) == ".md" }

// html is the page as the site shows it. Its links lead to pages of the site, or to the repository.
func (p page) html(shape *template.Template, menu []section) ([]byte, error) {
	up := strings.Repeat("../", strings.Count(address(p.path), "/"))
	links, err := p.links()
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		to := elsewhere + l.target
		if isPage(l.target) {
			to = up + address(l.target)
		}
		if l.anchor != "" {
			to += "#" + l.anchor
		}
		l.node.Destination = []byte(to)
	}
	md := markdown()
	md.Renderer().AddOptions(html.WithUnsafe()) // the pages are our own
	var body, out bytes.Buffer
	if err := md.Renderer().Render(&body, p.source, p.root); err != nil {
		return nil, err
	}
	err = shape.Execute(&out, map[string]any{
		"Title": p.title(), "Body": template.HTML(body.String()), "Up": up, "Menu": shown(menu, p.path, up),
	})
	return out.Bytes(), err
}

// shown is the menu as one page has it.
func shown(menu []section, path, up string) []section {
	var all []section
	for _, s := range menu {
		here := section{Name: s.Name}
		for _, i := range s.Items {
			here.Items = append(here.Items, item{Name: i.Name, Path: up + address(i.Path), Here: i.Path == path})
		}
		all = append(all, here)
	}
	return all
}

func write(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o644)
}
