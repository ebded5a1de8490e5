package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const repository = "../.."

// others are the pages of the repository that are not below docs/.
var others = []string{"README.md", "CONTRIBUTING.md", "clients/js/README.md", "examples/README.md", "deploy/README.md"}

func pages(t *testing.T) (all []page) {
	t.Helper()
	paths, err := pagePaths(repository)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(paths, others...) {
		p, err := readPage(repository, path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

// Every link within the repository leads to a file that is there, and to a heading that it has.
func TestPages_LinksLeadSomewhere(t *testing.T) {
	all := pages(t)
	for _, p := range all {
		links, err := p.links()
		if err != nil {
			t.Error(err)
		}
		for _, l := range links {
			if _, err := os.Stat(filepath.Join(repository, filepath.FromSlash(l.target))); err != nil {
				t.Errorf("%s links to %s: %v", p.path, l.target, err)
			}
			i := slices.IndexFunc(all, func(other page) bool { return other.path == l.target })
			if l.anchor != "" && (i < 0 || !all[i].ids()[l.anchor]) {
				t.Errorf("%s links to %s#%s, which has no such heading", p.path, l.target, l.anchor)
			}
		}
	}
}

// A page that the contents do not name would never be found.
func TestPages_AreInTheContents(t *testing.T) {
	index, err := readPage(repository, contents)
	if err != nil {
		t.Fatal(err)
	}
	menu, err := sections(index)
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{contents: true}
	for _, s := range menu {
		for _, i := range s.Items {
			named[i.Path] = true
		}
	}
	for _, p := range pages(t) {
		if isPage(p.path) && !named[p.path] && !strings.HasPrefix(p.path, "docs/adr/") {
			t.Errorf("%s is not in %s", p.path, contents)
		}
	}
}

// What the site links to within itself is there, however deep the page is.
func TestSite_LinksLeadToItsPages(t *testing.T) {
	folder := t.TempDir()
	n, err := build(repository, folder)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	err = filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".html" {
			return err
		}
		found++
		b, err := os.ReadFile(path)
		for part := range strings.SplitSeq(string(b), `href="`) {
			to, _, ok := strings.Cut(part, `"`)
			to, _, _ = strings.Cut(to, "#")
			if !ok || to == "" || strings.Contains(to, ":") || strings.HasPrefix(to, "<!doctype") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), to)); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
		return err
	})
	if err != nil || found != n {
		t.Errorf("%d pages, want %d: %v", found, n, err)
	}
}
