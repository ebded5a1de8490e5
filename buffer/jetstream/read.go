package jetstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

// pageChunks bounds a page, however small its chunks are.
const pageChunks = 8192

// errGap: where the chunk should be there is another, or none.
var errGap = errors.New("chunk is not where it should be")

// Get implements buffer.Store. It asks the leader: what any node has acknowledged is in it.
func (s *Store) Get(ctx context.Context, id ulid.ULID) (buffer.Run, error) {
	v, err := s.load(ctx, id)
	if err != nil {
		return buffer.Run{}, err
	}
	return v.Run, nil
}

// Read implements buffer.Store. It asks the leader only for what this node has not heard of.
func (s *Store) Read(ctx context.Context, id ulid.ULID, from int64, max int) (buffer.Page, error) {
	if from < 0 {
		return buffer.Page{}, fmt.Errorf("read position %d: they count from 0", from)
	}
	if err := s.closed(); err != nil {
		return buffer.Page{}, err
	}
	e, known := s.index.get(id)
	if !known || from > e.run.Head || from == e.run.Head && s.unheard(e) {
		if _, err := s.load(ctx, id); err != nil {
			return buffer.Page{}, err
		}
		if e, known = s.index.get(id); !known { // forgotten meanwhile
			return buffer.Page{}, buffer.ErrNotFound
		}
	}
	return s.page(ctx, e, from, max)
}

// unheard reports whether there may be more of a run than this node is told of.
func (s *Store) unheard(e *entry) bool {
	return e.run.State.Live() && s.deaf[s.layout.shard(e.run.ID)].Load()
}

func (s *Store) page(ctx context.Context, e *entry, from int64, max int) (buffer.Page, error) {
	page := buffer.Page{Run: e.run}
	switch {
	case e.swept:
		return page, buffer.ErrReleased
	case from > e.run.Head:
		return page, buffer.ErrAhead
	}
	if e.partial {
		stream, _ := s.layout.place(e.run.ID)
		m, err := s.fromAny(ctx, stream, get{Seq: e.rec})
		if err == nil {
			var v version
			v, err = s.versionAt(ctx, stream, m)
			page.Run.Partial = v.Run.Partial
		}
		if err != nil {
			return buffer.Page{}, s.readError("partial", err)
		}
	}
	if max <= 0 {
		return page, nil
	}
	chunks, err := s.chunks(ctx, e, from, max)
	if errors.Is(err, errGap) {
		chunks, err = s.late(ctx, e, from, max)
	}
	if errors.Is(err, errGap) { // perhaps it is being swept, from the beginning on, and this node has not heard of it
		if v, lost := s.load(ctx, e.run.ID); lost != nil || v.Run.State == buffer.Released {
			return page, cmp.Or(lost, buffer.ErrReleased)
		}
	}
	if err != nil {
		return buffer.Page{}, s.readError(fmt.Sprintf("run %s at %d", e.run.ID, from), err)
	}
	page.Chunks = chunks
	return page, nil
}

// late is chunks once the leader has stored all that e knows of: a replica may have told of it before.
func (s *Store) late(ctx context.Context, e *entry, from int64, max int) ([]buffer.Chunk, error) {
	stream, _ := s.layout.place(e.run.ID)
	if err := s.reached(ctx, stream, e.seq); err != nil {
		return nil, err
	}
	return s.chunks(ctx, e, from, max)
}

// chunks reads those from position from on, up to the run's head as e has it.
func (s *Store) chunks(ctx context.Context, e *entry, from int64, max int) (page []buffer.Chunk, err error) {
	size := 0
	for next := from; next < e.run.Head && len(page) < pageChunks; {
		p, err := s.holding(ctx, e, next)
		if err != nil {
			return nil, err
		}
		chunks, err := p.chunks()
		if err != nil {
			return nil, err
		}
		for _, c := range chunks[next-p.Pos:] {
			size += len(c.Data)
			if len(page) > 0 && size > max || len(page) == pageChunks {
				return page, nil
			}
			page = append(page, c)
			next++
		}
	}
	return page, nil
}

// holding finds the pack with the chunk at pos.
func (s *Store) holding(ctx context.Context, e *entry, pos int64) (pack, error) {
	id := e.run.ID
	stream, subject := s.layout.place(id)
	m, err := s.at(ctx, e, stream, subject, pos)
	if err != nil {
		return pack{}, err
	}
	p, err := s.whole(ctx, stream, m)
	if err == nil {
		s.index.note(id, p.Pos, m.seq-uint64(m.Part))
		s.index.note(id, p.Pos+p.N, m.seq-uint64(m.Part)+uint64(max(1, m.Parts)))
	}
	return p, err
}

// at finds a message of the pack with the chunk at pos: where it was noted to be, or else by search.
func (s *Store) at(ctx context.Context, e *entry, stream, subject string, pos int64) (message, error) {
	seq, noted := s.index.noted(e.run.ID, pos)
	if pos == 0 {
		seq, noted = 1, true
	}
	for noted {
		m, err := s.next(ctx, stream, subject, seq)
		if err != nil {
			return m, err
		}
		if m.Pos <= pos && pos < m.Pos+m.N {
			return m, nil
		}
		if m.Pos > pos || m.seq >= e.seq {
			break // noted wrongly, or of an earlier run of that id
		}
		seq = m.seq + 1
	}
	return s.search(ctx, stream, subject, e.seq, pos)
}

// search goes by halves through the sequences up to last.
func (s *Store) search(ctx context.Context, stream, subject string, last uint64, pos int64) (message, error) {
	for low, high := uint64(1), last+1; low < high; { // the pack is in [low, high)
		middle := low + (high-low)/2
		m, err := s.next(ctx, stream, subject, middle)
		switch {
		case errors.Is(err, errGap):
			high = middle
		case err != nil:
			return m, err
		case m.Pos > pos:
			high = middle
		case pos < m.Pos+m.N:
			return m, nil
		default:
			low = m.seq + 1
		}
	}
	return message{}, fmt.Errorf("position %d: %w", pos, errGap)
}

// next is the message of subject at seq or after it.
func (s *Store) next(ctx context.Context, stream, subject string, seq uint64) (message, error) {
	m, err := s.fromAny(ctx, stream, get{Seq: seq, Next: subject})
	if errors.Is(err, buffer.ErrNotFound) {
		err = errGap
	}
	return m, err
}

// readError says what was read where that is no answer by itself.
func (s *Store) readError(what string, err error) error {
	switch {
	case errors.Is(err, buffer.ErrNotFound), errors.Is(err, buffer.ErrClosed), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return fmt.Errorf("read log: %s: %w", what, err)
}
