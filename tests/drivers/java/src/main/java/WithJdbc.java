import static java.sql.ResultSet.CONCUR_READ_ONLY;
import static java.sql.ResultSet.CONCUR_UPDATABLE;
import static java.sql.ResultSet.FETCH_FORWARD;
import static java.sql.ResultSet.TYPE_FORWARD_ONLY;
import static java.sql.ResultSet.TYPE_SCROLL_INSENSITIVE;

import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.sql.BatchUpdateException;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.ParameterMetaData;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.SQLWarning;
import java.sql.Savepoint;
import java.sql.Statement;
import java.sql.Types;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Properties;
import java.util.UUID;
import javax.transaction.xa.XAResource;
import javax.transaction.xa.Xid;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyManager;
import org.postgresql.largeobject.LargeObject;
import org.postgresql.largeobject.LargeObjectManager;
import org.postgresql.util.PGobject;
import org.postgresql.xa.PGXADataSource;

/** pgJDBC: types in both forms, batches, cursors, metadata, COPY, XA, large objects, notifications, cancel. */
final class WithJdbc {
    private WithJdbc() {}

    static Connection connect(String... options) throws SQLException {
        Properties properties = new Properties();
        for (int at = 0; at < options.length; at += 2) {
            properties.setProperty(options[at], options[at + 1]);
        }
        return DriverManager.getConnection(Parts.url(), properties);
    }

    static void execute(Connection connection, String... texts) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            for (String text : texts) {
                statement.execute(text);
            }
        }
    }

    /** Prints all rows, or those columns of them. */
    static void rows(ResultSet found, int... columns) throws SQLException {
        int count = found.getMetaData().getColumnCount();
        int[] chosen = columns.length > 0 ? columns : java.util.stream.IntStream.rangeClosed(1, count).toArray();
        while (found.next()) {
            Object[] values = new Object[chosen.length];
            for (int at = 0; at < chosen.length; at++) {
                values[at] = found.getObject(chosen[at]);
            }
            Parts.say(values);
        }
    }

    static void query(Connection connection, String text) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet found = statement.executeQuery(text)) {
            rows(found);
        }
    }

    static PGobject object(String type, String value) throws SQLException {
        PGobject object = new PGobject();
        object.setType(type);
        object.setValue(value);
        return object;
    }

    static void types(Connection connection) throws SQLException {
        Object[][] all = {
            {"bool", true}, {"int2", (short) -32768}, {"int4", Integer.MIN_VALUE}, {"int8", Long.MAX_VALUE}, {"float4", 1.5f}, {"float8", -1e300},
            {"numeric", new BigDecimal("123456789012.345678901234567890")}, {"text", "Ünïcödé ✓ 𝒳"}, {"varchar", "x"}, {"bpchar", "x "},
            {"bytea", new byte[] {0, 1, -1, 39}}, {"date", LocalDate.of(2024, 2, 29)}, {"date", LocalDate.MAX}, {"time", LocalTime.of(23, 59, 59, 999999000)},
            {"timestamp", LocalDateTime.of(2024, 2, 29, 1, 2, 3, 4000)}, {"timestamptz", OffsetDateTime.of(2024, 2, 29, 1, 2, 3, 4000, ZoneOffset.UTC)},
            {"uuid", UUID.fromString("12345678-1234-5678-1234-567812345678")}, {"json", object("json", "{\"b\": 1,  \"a\": [null]}")},
            {"jsonb", object("jsonb", "{\"b\": 1,  \"a\": [null]}")}, {"inet", object("inet", "10.1.2.3/8")}, {"macaddr", object("macaddr", "08:00:2b:01:02:03")},
            {"bit(3)", object("bit", "101")}, {"varbit", object("varbit", "101")}, {"int4range", object("int4range", "[1,5]")},
            {"tstzrange", object("tstzrange", "[2024-01-01 00:00+00,)")}, {"interval", new org.postgresql.util.PGInterval("1 year 2 mons 3 days 04:05:06.7")},
            {"int4[]", new Integer[] {1, null, 3}}, {"int4[]", new int[][] {{1, 2}, {3, 4}}},
            {"text[]", new String[] {"a", null, "NULL", "q\"u\\o"}}, {"int8[]", new long[0]}, {"float8[]", new double[] {0.5}}, {"bool[]", new boolean[] {true}},
        };
        for (Object[] each : all) {
            Parts.attempt(() -> {
                try (PreparedStatement statement = connection.prepareStatement("select ?::" + each[0] + " as v, ?::" + each[0])) {
                    statement.setObject(1, each[1]);
                    statement.setNull(2, Types.NULL);
                    for (int time = 0; time < 2; time++) {
                        try (ResultSet found = statement.executeQuery()) {
                            ResultSetMetaData meta = found.getMetaData();
                            found.next();
                            Object back = each[1] instanceof java.time.temporal.Temporal ? found.getObject(1, each[1].getClass()) : found.getObject(1);
                            Parts.say(each[0], meta.getColumnTypeName(1), meta.getColumnType(1), meta.getColumnClassName(1), meta.getPrecision(1), meta.getScale(1),
                                    meta.getColumnDisplaySize(1), back, found.getString(1), found.getObject(2));
                        }
                    }
                }
            });
        }
        for (String text : new String[] {"array['2024-01-01'::date]", "array[1.10::numeric]", "array['1 day'::interval]", "array['\\x00'::bytea]", "array[null::uuid]",
            "row(1, 'a')", "'{[1,3)}'::int4multirange", "'a b'::tsvector", "1::oid", "'x'::name", "'pg_class'::regclass", "'x'::\"char\"", "'infinity'::timestamptz"}) {
            Parts.attempt(() -> query(connection, "select " + text));
        }
    }

    static void rows(Connection connection) throws SQLException {
        execute(connection, "create table items (id serial primary key, name varchar(20) not null unique, price numeric(10,2) check (price >= 0), tags text[] default '{}')");
        try (PreparedStatement insert = connection.prepareStatement("insert into items (name, price, tags) values (?, ?, ?)", Statement.RETURN_GENERATED_KEYS)) {
            for (String name : new String[] {"a", "b", "c"}) {
                insert.setString(1, name);
                insert.setBigDecimal(2, new BigDecimal("1.5"));
                insert.setArray(3, connection.createArrayOf("text", new String[] {name, null}));
                Parts.say(insert.executeUpdate());
                try (ResultSet keys = insert.getGeneratedKeys()) {
                    rows(keys);
                }
            }
            for (String name : new String[] {"d", "e", "a", "f"}) {
                insert.setString(1, name);
                insert.addBatch();
            }
            try {
                insert.executeBatch();
            } catch (BatchUpdateException error) {
                Parts.say(Parts.told(error.getNextException()), Arrays.toString(error.getUpdateCounts()));
            }
        }
        query(connection, "select * from items order by id");
        try (PreparedStatement update = connection.prepareStatement("update items set price = price + ? where name = any(?) returning id, price")) {
            ParameterMetaData meta = update.getParameterMetaData();
            Parts.say(meta.getParameterCount(), meta.getParameterTypeName(1), meta.getParameterTypeName(2), meta.getParameterClassName(1));
            update.setInt(1, 1);
            update.setArray(2, connection.createArrayOf("varchar", new String[] {"a", "c"}));
            rows(update.executeQuery());
        }
        try (Statement statement = connection.createStatement()) {
            boolean more = statement.execute("select 1; update items set price = 0 where name = 'a'; select 'x', 2");
            while (more || statement.getUpdateCount() >= 0) {
                if (more) {
                    rows(statement.getResultSet());
                } else {
                    Parts.say("updated", statement.getUpdateCount());
                }
                more = statement.getMoreResults();
            }
            Parts.say(statement.executeLargeUpdate("delete from items where name = 'c'"));
        }
        for (String text : new String[] {"insert into items (name) values ('a')", "insert into items (name) values (null)", "insert into items (name, price) values ('q', -1)",
            "insert into items (name) values ('a name that is too long')", "select * from nowhere", "select 1 +", "select 1/0"}) {
            try {
                execute(connection, text);
            } catch (org.postgresql.util.PSQLException error) {
                org.postgresql.util.ServerErrorMessage of = error.getServerErrorMessage();
                Parts.say(of.getSQLState(), of.getMessage(), of.getDetail(), of.getHint(), of.getPosition(), of.getTable(), of.getColumn(), of.getConstraint());
            }
        }
    }

    static void updatable(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement(TYPE_SCROLL_INSENSITIVE, CONCUR_UPDATABLE); ResultSet found = statement.executeQuery("select id, name, price from items order by id")) {
            found.last();
            Parts.say(found.getRow());
            found.first();
            found.updateBigDecimal("price", new BigDecimal("7.25"));
            found.updateRow();
            found.moveToInsertRow();
            found.updateString("name", "inserted");
            found.insertRow();
            found.absolute(2);
            found.deleteRow();
        }
        query(connection, "select name, price from items order by id");
    }

    static void transactions(Connection connection) throws SQLException {
        execute(connection, "create table steps (n int primary key)");
        connection.setAutoCommit(false);
        execute(connection, "insert into steps values (1)");
        Savepoint point = connection.setSavepoint("point");
        Parts.attempt(() -> execute(connection, "insert into steps values (1)"));
        Parts.attempt(() -> execute(connection, "select 1"));
        connection.rollback(point);
        execute(connection, "insert into steps values (2)");
        connection.releaseSavepoint(point);
        connection.commit();
        query(connection, "select * from steps order by n");
        connection.rollback();
        for (int level : new int[] {1, 2, 4, 8}) {
            connection.setTransactionIsolation(level);
            connection.setReadOnly(true);
            query(connection, "select current_setting('transaction_isolation'), current_setting('transaction_read_only')");
            Parts.attempt(() -> execute(connection, "insert into steps values (3)"));
            connection.rollback();
        }
        connection.setReadOnly(false);
        connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
        connection.setAutoCommit(true);
        try (Connection other = connect("autosave", "always")) {
            other.setAutoCommit(false);
            Parts.attempt(() -> execute(other, "insert into steps values (1)"));
            query(other, "select count(*) from steps");
            other.commit();
        }
    }

    static void retries(Connection one) throws SQLException {
        try (Connection two = connect()) {
            for (Connection each : new Connection[] {one, two}) {
                each.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
                each.setAutoCommit(false);
                query(each, "select count(*) from steps");
            }
            execute(one, "insert into steps values (10)");
            one.commit();
            int failed = 0;
            for (boolean done = false; !done; ) {
                try {
                    execute(two, "insert into steps select count(*) + 100 from steps");
                    two.commit();
                    done = true;
                } catch (SQLException error) {
                    failed += "40001".equals(error.getSQLState()) ? 1 : 100;
                    two.rollback();
                    done = failed > 9;
                }
            }
            Parts.say("tried again", failed);
            query(two, "select * from steps order by n");
        }
        one.commit();
        one.setAutoCommit(true);
        one.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
    }

    static void cursors(Connection connection) throws SQLException {
        connection.setAutoCommit(false);
        try (PreparedStatement statement = connection.prepareStatement("select g, 'row ' || g from generate_series(1, ?) g", TYPE_FORWARD_ONLY, CONCUR_READ_ONLY)) {
            statement.setInt(1, 1000);
            statement.setFetchSize(7);
            statement.setFetchDirection(FETCH_FORWARD);
            long sum = 0;
            try (ResultSet found = statement.executeQuery()) {
                while (found.next()) {
                    sum += found.getInt(1);
                }
            }
            Parts.say(sum);
            statement.setMaxRows(3);
            try (ResultSet found = statement.executeQuery()) {
                rows(found);
            }
        }
        execute(connection, "create procedure doubled(inout n int, in by int default 2) language plpgsql as $$ begin n := n * by; end $$");
        connection.commit();
        connection.setAutoCommit(true);
        try (Connection calls = connect("escapeSyntaxCallMode", "callIfNoReturn"); CallableStatement call = calls.prepareCall("{call doubled(?, ?)}")) {
            call.setInt(1, 21);
            call.registerOutParameter(1, Types.INTEGER);
            call.setInt(2, 2);
            call.execute();
            Parts.say(call.getInt(1));
        }
        query(connection, "select {fn concat('a', {fn ucase('b')})}, {d '2024-01-01'}, {fn timestampadd(SQL_TSI_DAY, 1, {ts '2024-01-01 00:00:00'})}");
    }

    static void references(Connection connection) throws SQLException {
        connection.setAutoCommit(false);
        try {
            execute(connection, "create function opened() returns refcursor language plpgsql as $$ declare c refcursor; begin open c for select 1, 'x' union all select 2, 'y' order by 1; return c; end $$");
            try (CallableStatement call = connection.prepareCall("{? = call opened()}")) {
                call.registerOutParameter(1, Types.REF_CURSOR);
                call.execute();
                rows((ResultSet) call.getObject(1));
            }
        } finally {
            connection.rollback();
            connection.setAutoCommit(true);
        }
    }

    static void geometry(Connection connection) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement("select ?::point")) {
            statement.setObject(1, new org.postgresql.geometric.PGpoint(1, 2));
            rows(statement.executeQuery());
        }
    }

    static void copies(Connection connection) throws Exception {
        execute(connection, "create table copied (a int, b text)");
        CopyManager copy = connection.unwrap(PGConnection.class).getCopyAPI();
        Parts.say(copy.copyIn("copy copied from stdin (format csv)", new StringReader("1,x\n2,\"y,z\"\n3,\n")));
        StringWriter out = new StringWriter();
        Parts.say(copy.copyOut("copy copied to stdout", out), out.toString().replace("\n", "|"));
        Parts.attempt(() -> copy.copyIn("copy copied from stdin", new StringReader("x\ty\n")));
        org.postgresql.copy.CopyIn in = copy.copyIn("copy copied from stdin");
        in.writeToCopy("5\tq\n".getBytes(), 0, 4);
        in.cancelCopy();
        query(connection, "select count(*) from copied");
    }

    static void told(Connection connection) throws Exception {
        try (Statement statement = connection.createStatement()) {
            statement.execute("do $$ begin raise notice 'n'; raise warning 'w'; end $$");
            for (SQLWarning warning = statement.getWarnings(); warning != null; warning = warning.getNextWarning()) {
                Parts.say("notice", warning.getSQLState(), warning.getMessage());
            }
            statement.execute("listen news");
        }
        try (Connection other = connect()) {
            execute(other, "notify news, 'hello'");
        }
        for (org.postgresql.PGNotification heard : connection.unwrap(PGConnection.class).getNotifications(10000)) {
            Parts.say(heard.getName(), heard.getParameter());
        }
        try (Statement statement = connection.createStatement()) {
            statement.setQueryTimeout(1);
            Parts.attempt(() -> statement.execute("select pg_sleep(30)"));
            statement.setQueryTimeout(0);
            Thread canceller = new Thread(() -> Parts.attempt(() -> {
                Thread.sleep(300);
                statement.cancel();
            }));
            canceller.start();
            Parts.attempt(() -> statement.execute("select pg_sleep(30)"));
            canceller.join();
        }
        Parts.say(connection.isValid(1), connection.getSchema(), connection.getCatalog());
    }

    record Id(int getFormatId, byte[] getGlobalTransactionId, byte[] getBranchQualifier) implements Xid {}

    static void phases() throws Exception {
        PGXADataSource source = new PGXADataSource();
        source.setUrl(Parts.url());
        javax.sql.XAConnection connection = source.getXAConnection();
        XAResource resource = connection.getXAResource();
        for (boolean commits : new boolean[] {true, false}) {
            Xid id = new Id(7, new byte[] {1, 2}, new byte[] {(byte) (commits ? 1 : 0)});
            resource.start(id, XAResource.TMNOFLAGS);
            execute(connection.getConnection(), "insert into steps values (" + (commits ? 1000 : 1001) + ")");
            resource.end(id, XAResource.TMSUCCESS);
            Parts.say(resource.prepare(id) == XAResource.XA_OK, resource.recover(XAResource.TMSTARTRSCAN).length);
            if (commits) {
                resource.commit(id, false);
            } else {
                resource.rollback(id);
            }
        }
        connection.close();
        try (Connection plain = connect()) {
            query(plain, "select * from steps where n >= 1000");
        }
    }

    static void largeObjects(Connection connection) throws SQLException {
        connection.setAutoCommit(false);
        try {
            LargeObjectManager manager = connection.unwrap(PGConnection.class).getLargeObjectAPI();
            long id = manager.createLO();
            LargeObject large = manager.open(id, LargeObjectManager.READWRITE);
            large.write("hello".getBytes());
            large.seek(1);
            Parts.say(new String(large.read(10)), large.size(), large.tell());
            large.close();
            manager.delete(id);
            connection.commit();
        } finally {
            connection.rollback();
            connection.setAutoCommit(true);
        }
    }

    static void userTypes(Connection connection) throws SQLException {
        execute(connection, "create type mood as enum ('sad', 'ok')", "create type pair as (a int, b text)", "create domain positive as int check (value > 0)",
                "create table typed (m mood, ms mood[], p pair, ps pair[], d positive)");
        try (PreparedStatement insert = connection.prepareStatement("insert into typed values (?, ?, ?, ?, ?)")) {
            insert.setObject(1, "ok", Types.OTHER);
            insert.setArray(2, connection.createArrayOf("mood", new String[] {"sad", null}));
            insert.setObject(3, object("pair", "(1,\"x,y\")"));
            insert.setArray(4, connection.createArrayOf("pair", new Object[] {object("pair", "(2,z)")}));
            insert.setInt(5, 5);
            Parts.say(insert.executeUpdate());
            insert.setObject(1, "bad", Types.OTHER);
            Parts.attempt(insert::executeUpdate);
        }
        query(connection, "select * from typed");
        try (Statement statement = connection.createStatement(); ResultSet found = statement.executeQuery("select * from typed")) {
            ResultSetMetaData meta = found.getMetaData();
            for (int at = 1; at <= meta.getColumnCount(); at++) {
                Parts.say(meta.getColumnName(at), meta.getColumnTypeName(at), meta.getColumnType(at), meta.getTableName(at), meta.isNullable(at), meta.isAutoIncrement(at));
            }
        }
    }

    static void metadata(Connection connection) throws SQLException {
        execute(connection, "create table parents (id bigint generated always as identity primary key, code text unique, at timestamp(3), constraint named check (id > 0))",
                "create table children (id int, parent bigint references parents on delete cascade on update set null deferrable, v varchar(9) default 'x', primary key (id, parent))",
                "create index children_v on children (v desc, lower(v)) where id > 3", "create view seen as select * from parents", "comment on table parents is 'the parents'",
                "comment on column parents.code is 'a code'", "create sequence numbers", "create materialized view kept as select 1 as one", "grant select on parents to public");
        DatabaseMetaData meta = connection.getMetaData();
        Parts.say(meta.getDatabaseProductName(), meta.getDatabaseMajorVersion(), meta.getMaxConnections() > 0, meta.getMaxColumnNameLength(), meta.supportsSavepoints());
        Parts.part("tables", () -> rows(meta.getTables(null, "public", "%", null), 2, 3, 4, 5));
        Parts.part("columns", () -> rows(meta.getColumns(null, "public", "%", "%"), 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16, 17, 18, 23, 24));
        Parts.part("primary keys", () -> rows(meta.getPrimaryKeys(null, "public", "children"), 3, 4, 5, 6));
        Parts.part("imported keys", () -> rows(meta.getImportedKeys(null, "public", "children"), 3, 4, 7, 8, 9, 10, 11, 12, 13, 14));
        Parts.part("exported keys", () -> rows(meta.getExportedKeys(null, "public", "parents"), 3, 4, 7, 8, 9, 10, 11));
        Parts.part("indexes", () -> rows(meta.getIndexInfo(null, "public", "children", false, true), 3, 4, 6, 7, 8, 9, 10, 13));
        Parts.part("best row", () -> rows(meta.getBestRowIdentifier(null, "public", "parents", DatabaseMetaData.bestRowSession, true)));
        Parts.part("version columns", () -> rows(meta.getVersionColumns(null, "public", "parents"), 2, 3, 4));
        Parts.part("schemas", () -> rows(meta.getSchemas(null, "p%"), 1));
        Parts.part("table types", () -> rows(meta.getTableTypes()));
        Parts.part("procedures", () -> rows(meta.getProcedures(null, "public", "%"), 2, 3, 7, 8));
        Parts.part("functions", () -> rows(meta.getFunctions(null, "public", "%"), 2, 3, 4, 5));
        Parts.part("function columns", () -> rows(meta.getFunctionColumns(null, "public", "%", "%"), 3, 4, 5, 6, 7));
        Parts.part("procedure columns", () -> rows(meta.getProcedureColumns(null, "public", "%", "%"), 3, 4, 5, 6, 7));
        Parts.part("privileges", () -> rows(meta.getTablePrivileges(null, "public", "parents"), 2, 3, 4, 5, 6, 7));
        Parts.part("column privileges", () -> rows(meta.getColumnPrivileges(null, "public", "parents", "code"), 3, 4, 5, 6, 7, 8));
        Parts.part("user types", () -> rows(meta.getUDTs(null, "public", "%", null), 2, 3, 4, 5, 6, 7));
        Parts.part("types", () -> {
            try (ResultSet found = meta.getTypeInfo()) {
                java.util.TreeSet<String> names = new java.util.TreeSet<>();
                while (found.next()) {
                    names.add(found.getString(1) + ":" + found.getInt(2) + ":" + found.getInt(3));
                }
                names.removeIf(name -> !name.matches("(bool|int[248]|text|varchar|bpchar|numeric|date|timetz?|timestamptz?|uuid|jsonb?|bytea|mood|pair|positive|serial|_int4|interval|inet):.*"));
                Parts.say(names);
            }
        });
        Parts.part("client info", () -> rows(meta.getClientInfoProperties(), 1, 2));
        Parts.part("keywords", () -> Parts.say(meta.getSQLKeywords()));
        Parts.part("functions of strings", () -> Parts.say(meta.getStringFunctions(), meta.getNumericFunctions()));
        Parts.part("catalogs", () -> {
            try (ResultSet found = meta.getCatalogs()) {
                while (found.next()) {
                    if (found.getString(1).equals(Parts.at("DATABASE"))) {
                        Parts.say("found");
                    }
                }
            }
        });
        Parts.part("hstore", () -> {
            execute(connection, "create extension hstore");
            try (PreparedStatement statement = connection.prepareStatement("select ?::hstore, ?::hstore -> 'a'")) {
                statement.setObject(1, new HashMap<>(java.util.Map.of("a", "1")));
                statement.setObject(2, new HashMap<>(java.util.Map.of("a", "1")));
                rows(statement.executeQuery());
            }
        });
    }

    public static void main(String[] arguments) throws Exception {
        for (String mode : new String[] {"extended", "simple"}) {
            try (Connection connection = connect("preferQueryMode", mode, "prepareThreshold", "-1", "binaryTransfer", "true")) {
                Parts.part("types " + mode, () -> types(connection));
            }
        }
        try (Connection connection = connect()) {
            Parts.part("rows", () -> rows(connection));
            Parts.part("updatable", () -> updatable(connection));
            Parts.part("transactions", () -> transactions(connection));
            Parts.part("retries", () -> retries(connection));
            Parts.part("cursors", () -> cursors(connection));
            Parts.part("references", () -> references(connection));
            Parts.part("geometry", () -> geometry(connection));
            Parts.part("copies", () -> copies(connection));
            Parts.part("told", () -> told(connection));
            Parts.part("phases", WithJdbc::phases);
            Parts.part("large objects", () -> largeObjects(connection));
            Parts.part("user types", () -> userTypes(connection));
            Parts.part("metadata", () -> metadata(connection));
        }
        try (Connection connection = connect("reWriteBatchedInserts", "true", "ApplicationName", "mine", "currentSchema", "public", "options", "-c work_mem=5MB")) {
            Parts.part("rewritten", () -> {
                try (PreparedStatement insert = connection.prepareStatement("insert into copied values (?, ?)")) {
                    for (int n = 0; n < 100; n++) {
                        insert.setInt(1, n);
                        insert.setString(2, "x");
                        insert.addBatch();
                    }
                    Parts.say(insert.executeBatch().length);
                }
                query(connection, "select count(*), sum(a) from copied");
                query(connection, "select current_setting('application_name'), current_setting('search_path'), current_setting('work_mem')");
            });
        }
    }
}
