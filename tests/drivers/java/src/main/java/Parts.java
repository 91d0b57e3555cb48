import java.lang.reflect.Array;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;

/** What the programs share: parts that print, each of which goes on where the one before failed. */
final class Parts {
    /** The body of a part. */
    interface Body {
        void run() throws Exception;
    }

    private Parts() {}

    static String at(String name) {
        return System.getenv("PG" + name);
    }

    /** Where the server is. */
    static String url() {
        return "jdbc:postgresql://" + at("HOST") + ":" + at("PORT") + "/" + at("DATABASE") + "?user=" + at("USER");
    }

    /** Runs a part: "# name", what it prints, and "! SQLSTATE message" where it fails. */
    static void part(String name, Body body) {
        System.out.println("# " + name);
        attempt(body);
    }

    /** Runs what may fail, and prints the error. */
    static void attempt(Body body) {
        try {
            body.run();
        } catch (Throwable error) {
            System.out.println("! " + told(error));
        }
    }

    /** An error as its SQLSTATE and its first line, whichever library wraps it. */
    static String told(Throwable error) {
        Throwable inner = error;
        while (!(inner instanceof SQLException) && inner.getCause() != null) {
            inner = inner.getCause();
        }
        String state = inner instanceof SQLException of ? of.getSQLState() : "-";
        return error.getClass().getSimpleName() + " " + state + " " + String.valueOf(inner.getMessage()).lines().findFirst().orElse("");
    }

    /** A value as text: arrays by their elements, bytes in hexadecimal. */
    static String text(Object value) {
        if (value instanceof byte[] bytes) {
            return java.util.HexFormat.of().formatHex(bytes);
        }
        if (value instanceof java.sql.Array array) {
            try {
                return array.getBaseTypeName() + text(array.getArray());
            } catch (SQLException error) {
                return told(error);
            }
        }
        if (value != null && value.getClass().isArray()) {
            List<String> all = new ArrayList<>();
            for (int at = 0; at < Array.getLength(value); at++) {
                all.add(text(Array.get(value, at)));
            }
            return all.toString();
        }
        return String.valueOf(value);
    }

    /** Prints values in one line. */
    static void say(Object... values) {
        List<String> all = new ArrayList<>();
        for (Object value : values) {
            all.add(text(value));
        }
        System.out.println(String.join(" ", all));
    }
}
