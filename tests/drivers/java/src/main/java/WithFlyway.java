import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.MigrationInfo;
import org.flywaydb.core.api.configuration.FluentConfiguration;
import org.flywaydb.core.api.output.MigrateResult;
import org.flywaydb.database.postgresql.PostgreSQLConfigurationExtension;

/** Flyway: migrations with and without transactions, repeatable ones, a failed one and its repair, baseline, validate, clean. */
final class WithFlyway {
    private WithFlyway() {}

    static final Map<String, String> FILES = Map.of(
            "V1__first.sql", "create table people (id bigint generated always as identity primary key, name text not null);\ncreate function doubled(n int) returns int language sql as $$ select n * 2 $$;\ninsert into people (name) values ('a'), ('${who}');",
            "V2__more.sql", "create type mood as enum ('sad', 'ok');\nalter table people add mood mood default 'ok';\ncreate index people_name on people (lower(name));\ncomment on table people is 'who';\nselect doubled(21);",
            "V3__beside.sql", "create index concurrently people_mood on people (mood);",
            "V3__beside.sql.conf", "executeInTransaction=false",
            "R__seen.sql", "create or replace view seen as select id, name from people;",
            "V4__copy.sql", "copy people (name) from stdin;\nc\nd\n\\.\n");

    static Flyway flyway(Path directory) {
        FluentConfiguration made = Flyway.configure().dataSource(Parts.url(), null, null).locations("filesystem:" + directory).placeholders(Map.of("who", "b")).cleanDisabled(false).schemas("public", "more").defaultSchema("public");
        // Without it CREATE INDEX CONCURRENTLY waits for the lock of Flyway's own transaction.
        made.getConfigurationExtension(PostgreSQLConfigurationExtension.class).setTransactionalLock(false);
        return made.load();
    }

    static void info(Flyway flyway) {
        for (MigrationInfo info : flyway.info().all()) {
            Parts.say(info.getVersion(), info.getDescription(), info.getType(), info.getState(), info.getChecksum());
        }
    }

    public static void main(String[] arguments) throws Exception {
        Logger.getLogger("").setLevel(Level.OFF);
        Path directory = Files.createTempDirectory("flyway");
        for (Map.Entry<String, String> file : FILES.entrySet()) {
            Files.writeString(directory.resolve(file.getKey()), file.getValue());
        }
        Parts.part("forth", () -> {
            MigrateResult result = flyway(directory).migrate();
            Parts.say(result.migrationsExecuted, result.targetSchemaVersion, result.success, result.database == null);
            Parts.say(flyway(directory).migrate().migrationsExecuted);
            flyway(directory).validate();
            info(flyway(directory));
        });
        Parts.part("failed", () -> {
            Files.writeString(directory.resolve("V5__bad.sql"), "create table bad (id int);\nselect 1/0;");
            Parts.attempt(() -> flyway(directory).migrate());
            info(flyway(directory));
            Files.writeString(directory.resolve("V5__bad.sql"), "create table bad (id int);");
            Files.writeString(directory.resolve("R__seen.sql"), "create or replace view seen as select id, name, mood from people;");
            flyway(directory).repair();
            Parts.say(flyway(directory).migrate().migrationsExecuted);
            info(flyway(directory));
        });
        Parts.part("clean", () -> {
            Parts.say(flyway(directory).clean().schemasCleaned);
            Flyway.configure().dataSource(Parts.url(), null, null).locations("filesystem:" + directory).baselineVersion("3").placeholders(Map.of("who", "b")).load().baseline();
            info(flyway(directory));
        });
        try (var files = Files.list(directory)) {
            for (Path file : files.toList()) {
                Files.delete(file);
            }
        }
        Files.delete(directory);
    }
}
