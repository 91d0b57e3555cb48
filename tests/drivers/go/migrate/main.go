// golang-migrate: versions forth and back through both of its drivers, a failed one that leaves it dirty, its lock.
package main

import (
	"errors"
	"fmt"
	"testing/fstest"

	"github.com/golang-migrate/migrate/v4"
	_ "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	_ "github.com/golang-migrate/migrate/v4/database/postgres"
	"github.com/golang-migrate/migrate/v4/source/iofs"

	. "quorate/drivers/sections"
)

var files = map[string]string{
	"1_first.up.sql":   "create table people (id bigint generated always as identity primary key, name text not null); create index on people (lower(name));",
	"1_first.down.sql": "drop table people",
	"2_more.up.sql":    "begin; create type mood as enum ('sad', 'ok'); alter table people add mood mood default 'ok', add constraint named check (name <> ''); insert into people (name) values ('a'); commit;",
	"2_more.down.sql":  "begin; alter table people drop constraint named, drop mood; drop type mood; commit;",
	"3_bad.up.sql":     "create table extra (id int); select 1/0;",
	"3_bad.down.sql":   "drop table if exists extra",
}

func told(err error) {
	if err != nil && !errors.Is(err, migrate.ErrNoChange) {
		Tell(err)
	}
}

func run(url string) func() error {
	return func() error {
		tree := fstest.MapFS{}
		for name, text := range files {
			tree[name] = &fstest.MapFile{Data: []byte(text)}
		}
		source, err := iofs.New(tree, ".")
		if err != nil {
			return err
		}
		made, err := migrate.NewWithSourceInstance("files", source, url)
		if err != nil {
			return err
		}
		defer made.Close()
		version := func() {
			number, dirty, err := made.Version()
			Say(int(number), dirty, fmt.Sprint(err))
		}
		version()
		told(made.Migrate(2))
		version()
		told(made.Migrate(2))
		told(made.Up())
		version()
		told(made.Up())
		told(made.Force(2))
		told(made.Steps(-1))
		version()
		told(made.Steps(1))
		told(made.Down())
		version()
		told(made.Drop())
		return nil
	}
}

func main() {
	rest := URL()[len("postgres"):]
	Run([]Part{{"lib/pq", run("postgres" + rest)}, {"pgx", run("pgx5" + rest + "&x-multi-statement=true")}})
}
