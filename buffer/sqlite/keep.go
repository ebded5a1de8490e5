package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync"

	"modernc.org/sqlite"
)

// pagesRead are the pages that are being read, by the number that their query gives to the SQL function keep.
type pagesRead struct {
	mu   sync.Mutex
	last int64
	of   map[int64]*pageMemory
}

var beingRead = &pagesRead{of: map[int64]*pageMemory{}}

func (p *pagesRead) begin(m *pageMemory) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	p.of[p.last] = m
	return p.last
}

func (p *pagesRead) end(number int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.of, number)
}

func (p *pagesRead) get(number int64) *pageMemory {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of[number]
}

// keep(number, data) copies data, a blob, to the memory of the page with that number, and returns its length: a
// column would get new memory for each row. It is called where the statement is stepped, so by the page's reader.
func keep(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
	number, _ := args[0].(int64)
	data, ok := args[1].([]byte) // SQLite's, until this returns
	if !ok {
		return nil, errors.New("keep: the data is no blob")
	}
	m := beingRead.get(number)
	if m == nil {
		return nil, errors.New("keep: nobody reads the page")
	}
	m.add(data)
	return int64(len(data)), nil
}

// connector opens connections that know keep.
type connector struct{ dsn string }

var withKeep = newDriver()

func newDriver() *sqlite.Driver {
	d := new(sqlite.Driver)
	d.MustRegisterFunction("keep", &sqlite.FunctionImpl{NArgs: 2, Scalar: keep, VolatileArgs: true})
	return d
}

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return withKeep.Open(c.dsn)
}

// Driver implements driver.Connector.
func (c connector) Driver() driver.Driver { return withKeep }
