// SPDX-License-Identifier: BSD-2-Clause
// An echo server and its client, each with one selector of java.nio for all connections:
//     java Echo.java serve PORT
//     java Echo.java connect ADDRESS PORT
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;

public class Echo {
    static final int CONNECTIONS = 10, SIZE = 300_000;

    public static void main(String[] args) throws IOException {
        if (args[0].equals("serve"))
            serve(Integer.parseInt(args[1]));
        else
            connect(new InetSocketAddress(args[1], Integer.parseInt(args[2])));
    }

    /** Sends received bytes back; ends a connection when its client has ended and all is sent. */
    static void serve(int port) throws IOException {
        Selector selector = Selector.open();
        ServerSocketChannel listener = ServerSocketChannel.open();
        listener.setOption(StandardSocketOptions.SO_REUSEADDR, true);
        listener.bind(new InetSocketAddress(port)).configureBlocking(false);
        listener.register(selector, SelectionKey.OP_ACCEPT);
        while (true) {
            selector.select(key -> {
                try {
                    if (key.isAcceptable()) {
                        SocketChannel accepted = listener.accept();
                        accepted.configureBlocking(false);
                        accepted.register(selector, SelectionKey.OP_READ, ByteBuffer.allocateDirect(16384));
                    } else {
                        echo(key);
                    }
                } catch (IOException error) {
                    throw new RuntimeException(error);
                }
            });
        }
    }

    static void echo(SelectionKey key) throws IOException {
        SocketChannel channel = (SocketChannel) key.channel();
        ByteBuffer buffer = (ByteBuffer) key.attachment();
        boolean ended = channel.read(buffer) == -1;
        buffer.flip();
        channel.write(buffer);
        buffer.compact();
        if (ended && buffer.position() == 0)
            channel.close();
        else
            key.interestOps(buffer.position() == 0 ? SelectionKey.OP_READ
                : buffer.hasRemaining() && !ended ? SelectionKey.OP_READ | SelectionKey.OP_WRITE : SelectionKey.OP_WRITE);
    }

    /** A connection of the client: bytes that differ by connection and position. */
    static class Exchange {
        final byte first;
        final ByteBuffer unsent = ByteBuffer.allocate(SIZE);
        int received;

        Exchange(int number) {
            first = (byte) (number * 17);
            while (unsent.hasRemaining())
                unsent.put(at(unsent.position()));
            unsent.flip();
        }

        byte at(int position) {
            return (byte) (first + position * 31 + position / 251);
        }
    }

    static void connect(InetSocketAddress server) throws IOException {
        Selector selector = Selector.open();
        for (int number = 0; number < CONNECTIONS; number++) {
            SocketChannel channel = SocketChannel.open();
            channel.configureBlocking(false);
            channel.connect(server);
            channel.register(selector, SelectionKey.OP_CONNECT, new Exchange(number));
        }
        ByteBuffer buffer = ByteBuffer.allocateDirect(16384);
        for (int open = CONNECTIONS; open > 0;) {
            selector.select();
            for (SelectionKey key : selector.selectedKeys())
                open -= proceed(key, buffer) ? 0 : 1;
            selector.selectedKeys().clear();
        }
        System.out.println("exchanged " + CONNECTIONS);
    }

    /** False: the connection is complete. */
    static boolean proceed(SelectionKey key, ByteBuffer buffer) throws IOException {
        SocketChannel channel = (SocketChannel) key.channel();
        Exchange exchange = (Exchange) key.attachment();
        if (key.isConnectable() && channel.finishConnect())
            key.interestOps(SelectionKey.OP_READ | SelectionKey.OP_WRITE);
        if (key.isWritable()) {
            channel.write(exchange.unsent);
            if (!exchange.unsent.hasRemaining()) {
                channel.shutdownOutput();
                key.interestOps(SelectionKey.OP_READ);
            }
        }
        if (!key.isReadable())
            return true;
        boolean ended = channel.read(buffer.clear()) == -1;
        for (buffer.flip(); buffer.hasRemaining(); exchange.received++)
            if (buffer.get() != exchange.at(exchange.received))
                throw new IOException("wrong byte at " + exchange.received);
        if (ended && exchange.received != SIZE)
            throw new IOException("ended after " + exchange.received);
        if (ended)
            channel.close();
        return !ended;
    }
}
