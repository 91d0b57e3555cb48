import jakarta.persistence.Basic;
import jakarta.persistence.CascadeType;
import jakarta.persistence.CheckConstraint;
import jakarta.persistence.Column;
import jakarta.persistence.ElementCollection;
import jakarta.persistence.Embeddable;
import jakarta.persistence.Embedded;
import jakarta.persistence.Entity;
import jakarta.persistence.EnumType;
import jakarta.persistence.Enumerated;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.Index;
import jakarta.persistence.LockModeType;
import jakarta.persistence.ManyToMany;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.OneToMany;
import jakarta.persistence.OrderBy;
import jakarta.persistence.SequenceGenerator;
import jakarta.persistence.Table;
import jakarta.persistence.UniqueConstraint;
import jakarta.persistence.Version;
import java.math.BigDecimal;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.hibernate.SessionFactory;
import org.hibernate.annotations.GeneratedColumn;
import org.hibernate.annotations.JdbcTypeCode;
import org.hibernate.cfg.Configuration;
import org.hibernate.type.SqlTypes;

/** Hibernate: schemas made, validated and updated, entities with many types, associations, locks, versions, bulk statements. */
final class WithHibernate {
    private WithHibernate() {}

    enum Mood { SAD, OK }

    @Embeddable
    static class Address {
        String street;
        @Column(length = 10) String zip;
    }

    @Entity(name = "Author")
    @Table(name = "authors", indexes = @Index(name = "authors_born", columnList = "born desc, name"), uniqueConstraints = @UniqueConstraint(name = "authors_once", columnNames = {"name", "born"}),
            check = @CheckConstraint(name = "authors_price", constraint = "price >= 0"), comment = "who writes")
    static class Author {
        @Id @GeneratedValue(strategy = GenerationType.SEQUENCE) @SequenceGenerator(name = "authors_seq", sequenceName = "authors_seq", allocationSize = 10) Long id;
        @Column(nullable = false, length = 50) String name;
        @Enumerated(EnumType.STRING) Mood mood;
        Mood ordinal;
        LocalDate born;
        LocalTime at;
        LocalDateTime local;
        Instant instant;
        @JdbcTypeCode(SqlTypes.INTERVAL_SECOND) Duration took;
        @Column(precision = 10, scale = 2) BigDecimal price;
        double ratio;
        float small;
        boolean active;
        byte[] raw;
        UUID uuid;
        String[] words;
        List<Integer> numbers;
        @JdbcTypeCode(SqlTypes.JSON) Map<String, Object> data;
        @JdbcTypeCode(SqlTypes.INET) java.net.InetAddress net;
        @Embedded Address address;
        @ElementCollection Set<String> nicks = new TreeSet<>();
        @OneToMany(mappedBy = "author", cascade = CascadeType.ALL, orphanRemoval = true) @OrderBy("title") List<Book> books = new ArrayList<>();
        @Version int version;
        @GeneratedColumn("price * 2") BigDecimal twice;
    }

    @Entity(name = "Book")
    @Table(name = "books")
    static class Book {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
        @Basic(optional = false) String title;
        Integer score;
        @ManyToOne(optional = false) Author author;
        @ManyToMany(cascade = CascadeType.PERSIST) Set<Tag> tags = new java.util.LinkedHashSet<>();
    }

    @Entity(name = "Tag")
    @Table(name = "tags", schema = "other")
    static class Tag {
        @Id String word;
    }

    @Entity(name = "Named")
    @Table(name = "named")
    static class Named {
        @Id int id;
        @JdbcTypeCode(SqlTypes.NAMED_ENUM) Mood mood;
    }

    static SessionFactory factory(String what) {
        return factory(what, Author.class, Book.class, Tag.class);
    }

    static SessionFactory factory(String what, Class<?>... entities) {
        Configuration made = new Configuration();
        for (Class<?> each : entities) {
            made.addAnnotatedClass(each);
        }
        made.setProperty("hibernate.connection.url", Parts.url());
        made.setProperty("hibernate.hbm2ddl.auto", what);
        made.setProperty("hibernate.hbm2ddl.halt_on_error", "true");
        made.setProperty("hibernate.jdbc.batch_size", "20");
        made.setProperty("hibernate.jdbc.time_zone", "UTC");
        return made.buildSessionFactory();
    }

    static Author author() {
        Author author = new Author();
        author.name = "Ünïcödé";
        author.mood = Mood.OK;
        author.ordinal = Mood.SAD;
        author.born = LocalDate.of(1900, 2, 3);
        author.at = LocalTime.of(1, 2, 3);
        author.local = LocalDateTime.of(2024, 2, 29, 1, 2, 3, 4000);
        author.instant = Instant.ofEpochSecond(7);
        author.took = Duration.ofSeconds(90061);
        author.price = new BigDecimal("1.50");
        author.ratio = 0.1;
        author.raw = new byte[] {0, -1};
        author.uuid = UUID.fromString("12345678-1234-5678-1234-567812345678");
        author.words = new String[] {"x", null, "y,z"};
        author.numbers = List.of(1, 2);
        author.data = Map.of("a", List.of(1, "b"));
        author.net = java.net.InetAddress.getLoopbackAddress();
        author.address = new Address();
        author.address.zip = "123";
        author.nicks.addAll(List.of("n1", "n2"));
        for (String title : List.of("t1", "t2", "t3")) {
            Book book = new Book();
            book.title = title;
            book.score = title.charAt(1) - '0';
            book.author = author;
            Tag tag = new Tag();
            tag.word = "tag " + title;
            book.tags.add(tag);
            author.books.add(book);
        }
        return author;
    }

    static void objects(SessionFactory factory) {
        factory.inTransaction(session -> session.persist(author()));
        factory.inTransaction(session -> {
            Author found = session.createQuery("from Author a left join fetch a.books where a.name = :name", Author.class).setParameter("name", "Ünïcödé").getSingleResult();
            Parts.say(found.id, found.mood, found.ordinal, found.born, found.at, found.local, found.instant, found.took, found.price, found.ratio, found.raw, found.uuid, found.words, found.numbers,
                    found.data, found.net.getHostAddress(), found.address.zip, found.nicks, found.version, found.twice);
            found.books.removeIf(book -> book.title.equals("t3"));
            found.price = new BigDecimal("2");
            session.flush();
            Parts.say(found.version, found.books.size());
        });
        factory.inTransaction(session -> {
            for (Object[] row : session.createQuery("select a.name, count(b), sum(b.score), listagg(b.title, ',') within group (order by b.title desc) from Author a join a.books b group by a.id", Object[].class).getResultList()) {
                Parts.say(row);
            }
            for (Object[] row : session.createQuery("select b.title, row_number() over (order by b.score desc) from Book b order by b.title", Object[].class).getResultList()) {
                Parts.say(row);
            }
            Parts.say(session.createQuery("select count(a) from Author a where array_contains(a.words, 'x') and a.mood = OK and year(a.born) = 1900 and a.instant < instant and 'n1' member of a.nicks", Long.class).getSingleResult());
            Parts.say(session.createMutationQuery("update Book set score = score * 2 where score > 1").executeUpdate(), session.createMutationQuery("insert into Tag (word) values ('new'), ('newer')").executeUpdate(),
                    session.createMutationQuery("insert into Tag (word) values ('new') on conflict do nothing").executeUpdate());
            Parts.say(session.createQuery("select title from Book order by title limit 1 offset 1", String.class).getResultList());
            Parts.say(session.createQuery("from Book where title = 't1'", Book.class).setLockMode(LockModeType.PESSIMISTIC_WRITE).getResultList().size());
            try (var cursor = session.createQuery("select word from Tag order by word", String.class).setFetchSize(2).scroll()) {
                List<String> words = new ArrayList<>();
                while (cursor.next()) {
                    words.add(cursor.get());
                }
                Parts.say(words);
            }
            Parts.say(session.createNativeQuery("select title, score from books order by title", Object[].class).getResultList().size());
        });
        for (String price : new String[] {"-1", "3"}) {
            Parts.attempt(() -> factory.inTransaction(session -> {
                Author bad = author();
                bad.books.clear();
                bad.price = new BigDecimal(price);
                session.persist(bad);
            }));
        }
        Parts.attempt(() -> factory.inTransaction(one -> {
            Author mine = one.createQuery("from Author", Author.class).getSingleResult();
            factory.inTransaction(two -> two.createQuery("from Author", Author.class).getSingleResult().ratio = 5);
            mine.ratio = 6;
        }));
    }

    public static void main(String[] arguments) {
        Logger.getLogger("").setLevel(Level.OFF);
        Parts.part("schema", () -> {
            try (var connection = java.sql.DriverManager.getConnection(Parts.url())) {
                connection.createStatement().execute("create schema other");
            }
            for (String what : new String[] {"create", "validate", "update"}) {
                factory(what).close();
                Parts.say(what);
            }
        });
        Parts.part("objects", () -> {
            try (SessionFactory factory = factory("validate")) {
                objects(factory);
            }
        });
        Parts.part("named enums", () -> {
            try (SessionFactory factory = factory("create", Named.class)) {
                factory.inTransaction(session -> {
                    Named named = new Named();
                    named.mood = Mood.OK;
                    session.persist(named);
                });
                factory.inTransaction(session -> Parts.say(session.createQuery("select count(*) from Named where mood = OK", Long.class).getSingleResult()));
            }
        });
        Parts.part("back", () -> {
            try (SessionFactory factory = factory("create-drop")) {
                objects(factory);
            }
            try (var connection = java.sql.DriverManager.getConnection(Parts.url()); var found = connection.createStatement().executeQuery("select count(*) from pg_class where relname in ('authors', 'books', 'authors_seq')")) {
                found.next();
                Parts.say(found.getInt(1));
            }
        });
    }
}
