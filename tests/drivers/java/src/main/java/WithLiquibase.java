import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.util.List;
import java.util.logging.Level;
import java.util.logging.Logger;
import liquibase.Contexts;
import liquibase.LabelExpression;
import liquibase.Liquibase;
import liquibase.Scope;
import liquibase.changelog.ChangeSet;
import liquibase.database.Database;
import liquibase.database.DatabaseFactory;
import liquibase.database.jvm.JdbcConnection;
import liquibase.resource.DirectoryResourceAccessor;
import liquibase.snapshot.DatabaseSnapshot;
import liquibase.snapshot.SnapshotControl;
import liquibase.snapshot.SnapshotGeneratorFactory;
import liquibase.structure.DatabaseObject;
import liquibase.structure.core.Column;
import liquibase.structure.core.ForeignKey;
import liquibase.structure.core.Index;
import liquibase.structure.core.PrimaryKey;
import liquibase.structure.core.Sequence;
import liquibase.structure.core.Table;
import liquibase.structure.core.UniqueConstraint;
import liquibase.structure.core.View;

/** Liquibase: a change log forth and back, tags, its lock, and the snapshot that it takes of what is there. */
final class WithLiquibase {
    private WithLiquibase() {}

    static final String LOG = """
            databaseChangeLog:
              - changeSet: {id: 1, author: a, changes: [
                  {createTable: {tableName: people, remarks: who, columns: [
                    {column: {name: id, type: bigint, autoIncrement: true, constraints: {primaryKey: true, primaryKeyName: people_pk}}},
                    {column: {name: name, type: varchar(50), remarks: in full, constraints: {nullable: false, unique: true, uniqueConstraintName: people_name}}},
                    {column: {name: price, type: "decimal(10,2)", defaultValueNumeric: 1.5}}, {column: {name: on_since, type: timestamp with time zone, defaultValueComputed: now()}},
                    {column: {name: data, type: jsonb}}, {column: {name: key, type: uuid}}, {column: {name: active, type: boolean, defaultValueBoolean: true}}, {column: {name: raw, type: blob}}, {column: {name: words, type: clob}}]}},
                  {createTable: {tableName: pets, columns: [{column: {name: id, type: int, constraints: {primaryKey: true}}}, {column: {name: owner, type: bigint, constraints: {foreignKeyName: pets_owner, references: people(id), deleteCascade: true, deferrable: true, initiallyDeferred: true}}}]}},
                  {createIndex: {tableName: people, indexName: people_price, columns: [{column: {name: price, descending: true}}, {column: {name: name}}]}}, {createSequence: {sequenceName: counts, incrementBy: 5, startValue: 100}}]}
              - changeSet: {id: 2, author: a, preConditions: [{onFail: MARK_RAN}, {not: [{tableExists: {tableName: nowhere}}]}], changes: [
                  {addColumn: {tableName: people, columns: [{column: {name: age, type: int, valueNumeric: 7, constraints: {nullable: false}}}]}}, {renameColumn: {tableName: people, oldColumnName: words, newColumnName: texts}},
                  {modifyDataType: {tableName: people, columnName: age, newDataType: bigint}, }, {addNotNullConstraint: {tableName: people, columnName: price, defaultNullValue: 0}}, {createView: {viewName: seen, selectQuery: "select id, name from people"}},
                  {insert: {tableName: people, columns: [{column: {name: name, value: b}}, {column: {name: age, valueNumeric: 3}}]}}, {addUniqueConstraint: {tableName: pets, columnNames: "id, owner", constraintName: pets_once, deferrable: true}}],
                  rollback: [{dropUniqueConstraint: {tableName: pets, constraintName: pets_once}}, {dropView: {viewName: seen}}, {delete: {tableName: people}}, {renameColumn: {tableName: people, oldColumnName: texts, newColumnName: words}}, {dropColumn: {tableName: people, columnName: age}}]}
              - changeSet: {id: 3, author: a, runInTransaction: false, changes: [{sql: {sql: "create index concurrently people_active on people (active)"}}], rollback: [{sql: {sql: "drop index concurrently people_active"}}]}
              - changeSet: {id: 4, author: a, preConditions: [{onFail: MARK_RAN}, {indexExists: {indexName: people_active}}, {sqlCheck: {expectedResult: 1, sql: "select count(*) from people"}}, {foreignKeyConstraintExists: {foreignKeyName: pets_owner}}, {sequenceExists: {sequenceName: counts}}], changes: [{tagDatabase: {tag: done}}]}
            """;

    static void snapshot(Database database) throws Exception {
        @SuppressWarnings("unchecked")
        Class<? extends DatabaseObject>[] kinds = new Class[] {Table.class, View.class, Column.class, Index.class, PrimaryKey.class, UniqueConstraint.class, ForeignKey.class, Sequence.class};
        DatabaseSnapshot found = SnapshotGeneratorFactory.getInstance().createSnapshot(database.getDefaultSchema(), database, new SnapshotControl(database, kinds));
        for (Class<? extends DatabaseObject> kind : kinds) {
            List<String> lines = new java.util.ArrayList<>();
            for (DatabaseObject one : found.get(kind)) {
                lines.add(one instanceof Column column ? column.getRelation().getName() + "." + column + " " + column.getType() + " " + column.isNullable() + " " + column.getDefaultValue() + " " + column.getRemarks() + " " + column.isAutoIncrement() : one.toString());
            }
            java.util.Collections.sort(lines);
            lines.forEach(line -> Parts.say(kind.getSimpleName(), line));
        }
    }

    public static void main(String[] arguments) throws Exception {
        Logger.getLogger("").setLevel(Level.OFF);
        Path directory = Files.createTempDirectory("liquibase");
        Files.writeString(directory.resolve("log.yaml"), LOG);
        try (Connection connection = DriverManager.getConnection(Parts.url())) {
            Database database = DatabaseFactory.getInstance().findCorrectDatabaseImplementation(new JdbcConnection(connection));
            Scope.child(java.util.Map.of(Scope.Attr.ui.name(), new liquibase.ui.LoggerUIService()), () -> {
                Liquibase liquibase = new Liquibase("log.yaml", new DirectoryResourceAccessor(directory), database);
                Parts.part("forth", () -> {
                    liquibase.update(new Contexts(), new LabelExpression());
                    liquibase.update(new Contexts(), new LabelExpression());
                    for (ChangeSet set : liquibase.getDatabaseChangeLog().getChangeSets()) {
                        Parts.say(set.getId(), database.getRanChangeSet(set) != null, database.getRanChangeSet(set).getExecType());
                    }
                    liquibase.validate();
                    Parts.say(liquibase.tagExists("done"), liquibase.listLocks().length, liquibase.listUnrunChangeSets(new Contexts(), new LabelExpression()).size());
                });
                Parts.part("snapshot", () -> snapshot(database));
                Parts.part("offline", () -> {
                    StringWriter out = new StringWriter();
                    liquibase.rollback(2, "", out);
                    out.toString().lines().filter(line -> !line.startsWith("--") && !line.contains("DATABASECHANGELOG") && !line.contains("databasechangelog")).forEach(Parts::say);
                });
                Parts.part("back", () -> {
                    liquibase.rollback(3, "");
                    liquibase.update(new Contexts(), new LabelExpression());
                    liquibase.rollback(4, "");
                    snapshot(database);
                    liquibase.dropAll();
                    liquibase.close();
                });
            });
        }
        Files.delete(directory.resolve("log.yaml"));
        Files.delete(directory);
    }
}
