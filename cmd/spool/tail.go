package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spool-dev/spool/api"
	"github.com/spool-dev/spool/api/client"
	"github.com/spool-dev/spool/api/wire"
	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/frame"
	"github.com/spool-dev/spool/buffer/provider"
)

type tailCmd struct {
	ID   runID `arg:"" help:"The run's id."`
	From int64 `placeholder:"N" help:"The position to begin at (default 0)."`
	Text bool  `xor:"form" help:"Print what the answer says, as it comes."`
	Raw  bool  `xor:"form" help:"Print the provider's bytes, exactly."`
	JSON bool  `name:"json" xor:"form" help:"Print each event as a line of JSON: position, data, and what it says."`
	source
}

// Run prints an answer, to its end where a buffer is asked, and what is stored now of a log. A run
// that ended short of its provider's own end is an error.
func (c tailCmd) Run(ctx context.Context, out io.Writer) error {
	if c.From < 0 {
		return misused("--from: %d is no position: they count from 0", c.From)
	}
	p := &printer{out: out, form: c.form()}
	if !c.asks() {
		return c.fromLog(ctx, func(r reading) error { return p.stored(ctx, r, c.ID, c.From) })
	}
	return c.explain(c.follow(ctx, p))
}

func (c tailCmd) form() form {
	switch {
	case c.Text:
		return textForm
	case c.Raw:
		return rawForm
	case c.JSON:
		return jsonForm
	}
	return lineForm
}

// follow prints a run of a buffer to its end, over as many connections as it takes.
func (c tailCmd) follow(ctx context.Context, p *printer) error {
	run, err := c.run(ctx, c.ID)
	if err != nil {
		return err
	}
	s, err := c.client().Resume(ctx, c.ID.String(), c.From)
	if err != nil {
		return err
	}
	defer s.Close()
	if p.form == rawForm {
		if _, err := io.Copy(p.out, s); err != nil {
			return err
		}
		return c.ended(ctx)
	}
	p.dialect = provider.Dialect(run.Dialect)
	p.kind = frame.Detect(s.ContentType, strings.HasSuffix(run.Path, ":streamGenerateContent"))
	if p.dialect == "" { // it was not known before its answer came
		if run, err = c.run(ctx, c.ID); err == nil {
			p.dialect = provider.Dialect(run.Dialect)
		}
	}
	chunks := frame.NewScanner(s, p.kind, 0)
	for pos := s.From; ; pos++ {
		chunk, err := chunks.Next()
		if errors.Is(err, io.EOF) {
			return p.end(c.ended(ctx))
		}
		if err != nil {
			return p.end(err)
		}
		if err := p.chunk(pos, chunk); err != nil {
			return err
		}
	}
}

// ended is how a run that was read to its end has ended: one that failed has a clean end too.
func (c tailCmd) ended(ctx context.Context) error {
	run, err := c.run(ctx, c.ID)
	if err != nil {
		return err
	}
	return howEnded(run.Run)
}

// storedPage is how many bytes of a stored run are read at once.
const storedPage = 1 << 20

// stored prints what a log holds of a run.
func (p *printer) stored(ctx context.Context, r reading, id runID, from int64) error {
	for {
		page, err := r.Read(ctx, id.ULID, from, storedPage)
		if err == nil && page.Run.State == buffer.Released { // swept or not
			err = buffer.ErrReleased
		}
		if err != nil {
			return fmt.Errorf("run %s from position %d: %w", id, from, err)
		}
		p.dialect, p.kind = page.Run.Dialect, page.Run.Framing
		for _, c := range page.Chunks {
			if err := p.chunk(c.Pos, c.Data); err != nil {
				return err
			}
			from = c.Pos + 1
		}
		some := len(page.Chunks) > 0
		page.GiveBack() // it is printed
		if !some || from == page.Run.Head {
			return p.end(howEnded(api.WireRun(page.Run, "", 0)))
		}
	}
}

// howEnded is nil for a whole answer, and for one that goes on.
func howEnded(r wire.Run) error {
	if r.Outcome == "" || r.Outcome == string(buffer.Completed) {
		return nil
	}
	return &client.InterruptedError{Run: r.ID, State: r.Outcome, Reason: r.Reason, Next: r.Head}
}

// end closes the last line of a text, and returns err.
func (p *printer) end(err error) error {
	if p.open {
		_, _ = io.WriteString(p.out, "\n") // the answer itself is out
	}
	return err
}
