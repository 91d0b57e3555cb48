// lib/pq: database/sql with text and binary parameters, arrays, COPY, listeners, notices, cancel.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"time"

	"github.com/lib/pq"

	. "quorate/drivers/sections"
)

var ctx = context.Background()

func scanAll(rows *sql.Rows, err error) {
	if err != nil {
		Tell(err)
		return
	}
	defer rows.Close()
	columns, _ := rows.ColumnTypes()
	for rows.Next() {
		values, to := make([]any, len(columns)), make([]any, len(columns))
		for at := range values {
			to[at] = &values[at]
		}
		Tell(rows.Scan(to...))
		for at, value := range values {
			switch it := value.(type) {
			case []byte:
				values[at] = fmt.Sprintf("%q", it)
			case time.Time:
				values[at] = it.UTC().Format(time.RFC3339Nano)
			}
		}
		Say(values...)
	}
	Tell(rows.Err())
}

func types(suffix string) func() error {
	return func() error {
		db, err := sql.Open("postgres", URL()+suffix)
		if err != nil {
			return err
		}
		defer db.Close()
		at := time.Date(2024, 2, 29, 1, 2, 3, 4000, time.UTC)
		for _, each := range []struct {
			kind  string
			value any
		}{
			{"bool", true}, {"int2", -3}, {"int4", 7}, {"int8", int64(1) << 60}, {"float8", 0.1}, {"numeric", "1.50"}, {"text", "Ünï ✓"}, {"bytea", []byte{0, 255}}, {"date", at}, {"timestamp", at},
			{"timestamptz", at}, {"time", "01:02:03"}, {"interval", "1 day 02:00"}, {"uuid", "12345678-1234-5678-1234-567812345678"}, {"jsonb", `{"a": [1]}`}, {"inet", "10.0.0.1"}, {"int4range", "[1,5)"},
			{"int8[]", pq.Array([]int64{1, 2})}, {"text[]", pq.Array([]string{"a", `b"c`, ""})}, {"float8[]", pq.Array([]float64{0.5})}, {"bool[]", pq.Array([]bool{true})}, {"bytea[]", pq.Array([][]byte{{0}, {1}})}, {"int4", nil},
		} {
			rows, err := db.QueryContext(ctx, "select $1::"+each.kind+" as v", each.value)
			if err == nil {
				columns, _ := rows.ColumnTypes()
				length, has := columns[0].Length()
				Say(each.kind, columns[0].DatabaseTypeName(), fmt.Sprint(columns[0].ScanType()), length, has)
			}
			scanAll(rows, err)
		}
		return nil
	}
}

func rows(db *sql.DB) error {
	if _, err := db.Exec("create table items (id serial primary key, name text not null unique, price numeric(10,2) check (price >= 0))"); err != nil {
		return err
	}
	statement, err := db.Prepare("insert into items (name, price) values ($1, $2) returning id")
	if err != nil {
		return err
	}
	for _, name := range []string{"a", "b", "a"} {
		var id int
		Tell(statement.QueryRow(name, 1.5).Scan(&id))
		Say(id)
	}
	result, err := db.Exec("update items set price = price * 2 where name = any($1)", pq.Array([]string{"a", "b"}))
	Tell(err)
	count, _ := result.RowsAffected()
	Say(count)
	for _, bad := range []string{"insert into items (name) values (null)", "insert into items (name, price) values ('z', -1)", "select * from nowhere", "select 1 +"} {
		_, err := db.Exec(bad)
		Tell(err)
	}
	_, err = db.Exec("select $1::int", "x")
	Tell(err)
	scanAll(db.Query("select 1; select 'two'"))
	scanAll(db.Query("select * from items order by id"))
	return nil
}

func transactions(db *sql.DB) error {
	for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
		tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: level, ReadOnly: true})
		if err != nil {
			return err
		}
		scanAll(tx.Query("select current_setting('transaction_isolation'), current_setting('transaction_read_only')"))
		_, err = tx.Exec("delete from items")
		Tell(err)
		Tell(tx.Commit())
	}
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	if _, err := tx.Exec("create table copied (a int, b text, c timestamptz)"); err != nil {
		return err
	}
	copy, err := tx.Prepare(pq.CopyIn("copied", "a", "b", "c"))
	if err != nil {
		return err
	}
	for n := range 100 {
		if _, err := copy.Exec(n, fmt.Sprint("line\t", n), time.Unix(0, 0)); err != nil {
			return err
		}
	}
	_, err = copy.Exec()
	Tell(err)
	Tell(copy.Close())
	Tell(tx.Commit())
	scanAll(db.Query("select count(*), sum(a), max(b) from copied"))
	return nil
}

func messages(db *sql.DB) error {
	listener := pq.NewListener(URL(), time.Second, time.Minute, nil)
	defer listener.Close()
	if err := listener.Listen("news"); err != nil {
		return err
	}
	_, err := db.Exec("select pg_notify('news', 'hello')")
	Tell(err)
	select {
	case heard := <-listener.Notify:
		Say(heard.Channel, heard.Extra)
	case <-time.After(10 * time.Second):
		Say("nothing")
	}
	short, end := context.WithTimeout(ctx, 300*time.Millisecond)
	defer end()
	_, err = db.ExecContext(short, "select pg_sleep(30)")
	Say(err != nil)
	connector, err := pq.NewConnector(URL())
	if err != nil {
		return err
	}
	noticed := sql.OpenDB(pq.ConnectorWithNoticeHandler(connector, func(notice *pq.Error) { Say("notice", string(notice.Code), notice.Message) }))
	defer noticed.Close()
	_, err = noticed.Exec("do $$ begin raise notice 'n'; end $$")
	return err
}

func main() {
	db, err := sql.Open("postgres", URL())
	if err != nil {
		fmt.Println("!", err)
		os.Exit(1)
	}
	defer db.Close()
	with := func(body func(*sql.DB) error) func() error { return func() error { return body(db) } }
	Run([]Part{
		{"types", types("")}, {"types in binary form", types("&binary_parameters=yes")}, {"rows", with(rows)}, {"transactions", with(transactions)}, {"messages", with(messages)},
	})
}
