package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The table of reports names tests that exist, and at least one in every row that says what holds.
func TestReports_NameTestsThatExist(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "reports.md"))
	if err != nil {
		t.Fatal(err)
	}
	held, later, ok := strings.Cut(string(b), "\n## Not yet\n")
	if !ok {
		t.Fatal("the table has no part for what is not yet")
	}
	rows := 0
	exists := map[string]map[string]bool{} // by folder
	for line := range strings.Lines(held) {
		report, test := cell(line, 1), cell(line, 4)
		if !isReport(report) {
			continue
		}
		rows++
		names := namedTests(t, test)
		if len(names) == 0 {
			t.Errorf("%s names no test", report)
		}
		for _, name := range names {
			if exists[name.folder] == nil {
				exists[name.folder] = tests(t, name.folder)
			}
			if !exists[name.folder][name.function] {
				t.Errorf("%s: %s is not in %s", report, name.function, name.folder)
			}
		}
	}
	if rows < 40 {
		t.Errorf("%d rows were read", rows)
	}
	for line := range strings.Lines(later) {
		if report := cell(line, 1); isReport(report) && !strings.Contains(held, report[:strings.IndexAny(report+",", ",")]) {
			t.Errorf("%s is not yet, and not in the table of what holds", report)
		}
	}
}

// isReport reports whether the text of a row's first cell is a report, and not the head of its column.
func isReport(text string) bool { return text != "" && text != "report" && text != "---" }

// cell is the n-th cell of a row of a table, from 1; empty where there is none.
func cell(line string, n int) string {
	cells := strings.Split(line, "|")
	if len(cells) <= n+1 {
		return ""
	}
	return strings.TrimSpace(cells[n])
}

type namedTest struct{ folder, function string }

var function = regexp.MustCompile(`^Test\w+$`)

// namedTests reads "`folder` TestOne, TestTwo; `other` TestThree".
func namedTests(t *testing.T, text string) (names []namedTest) {
	t.Helper()
	for part := range strings.SplitSeq(text, ";") {
		_, part, _ = strings.Cut(part, "`")
		folder, list, ok := strings.Cut(part, "`")
		for name := range strings.SplitSeq(list, ",") {
			if name = strings.TrimSpace(name); !ok || !function.MatchString(name) {
				t.Errorf("%q is not a folder and its tests", part)
				continue
			}
			names = append(names, namedTest{folder, name})
		}
	}
	return names
}

// tests are the tests of a package, by the folder that it is in.
func tests(t *testing.T, folder string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				found[fn.Name.Name] = true
			}
		}
	}
	return found
}
