import java.util.Map;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import org.apache.camel.Exchange;
import org.apache.camel.builder.RouteBuilder;
import org.apache.camel.main.Main;
import org.springframework.amqp.rabbit.connection.CachingConnectionFactory;

/** HTTP, to a store, to an HTTP backend: what `compare` measures. Arguments: HTTP port, backend port, store, its address. */
public class Forward {
    public static void main(String[] arguments) throws Exception {
        String in = "netty-http:http://127.0.0.1:" + arguments[0] + "/orders";
        String backend = "http://127.0.0.1:" + arguments[1] + "/?bridgeEndpoint=true";
        String store = arguments[2];
        String address = arguments[3];
        Main main = new Main();
        String put = store.equals("rabbitmq") ? rabbitmq(main, address) : postgresql(main, address);
        String take = store.equals("rabbitmq")
            ? "spring-rabbitmq:default?queues=CamelOrders&routingKey=CamelOrders&autoDeclare=true&arg.queue.durable=true"
            : "sql:select id, body from camel_orders order by id limit 100?onConsume=delete from camel_orders where id = :#id&delay=1";
        main.configure().addRoutesBuilder(new RouteBuilder() {
            @Override
            public void configure() {
                from(in).convertBodyTo(String.class).to(put)
                    .removeHeaders("*").setHeader(Exchange.HTTP_RESPONSE_CODE, constant(202)).setBody(constant(""));
                var taken = from(take);
                if (store.equals("postgresql")) {
                    taken = taken.process(row -> row.getMessage().setBody(row.getMessage().getBody(Map.class).get("body")));
                }
                taken.removeHeaders("*").setHeader(Exchange.HTTP_METHOD, constant("POST")).to(backend);
            }
        });
        main.run();
    }

    private static String rabbitmq(Main main, String port) {
        CachingConnectionFactory factory = new CachingConnectionFactory("127.0.0.1", Integer.parseInt(port));
        factory.setPublisherConfirmType(CachingConnectionFactory.ConfirmType.CORRELATED);
        main.bind("connections", factory);
        return "spring-rabbitmq:default?routingKey=CamelOrders&confirm=enabled";
    }

    private static String postgresql(Main main, String url) throws Exception {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(url);
        HikariDataSource source = new HikariDataSource(config);
        try (var connection = source.getConnection(); var statement = connection.createStatement()) {
            statement.execute("create table if not exists camel_orders (id bigserial primary key, body text not null)");
        }
        main.bind("source", source);
        return "sql:insert into camel_orders (body) values (:#${body})";
    }
}
