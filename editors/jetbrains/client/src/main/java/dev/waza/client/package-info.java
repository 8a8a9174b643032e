/**
 * A client of the waza daemon, for any program on the JVM: no dependencies, Java 17.
 *
 * <p>Start with {@link dev.waza.client.WazaClient}: it starts {@code waza jsonrpc}, keeps it alive,
 * and maintains the {@linkplain dev.waza.client.RunState state of each run} from the daemon's
 * notifications.
 *
 * <p><b>Threads.</b> A client has one thread of its own, the <i>owner</i>. Only the owner changes
 * the client's state, calls listeners and completes futures, in the order of the daemon's messages.
 * Therefore listeners and continuations of futures must not block it. Each connection adds one
 * thread that reads messages and, for a process, one that drains stderr; both end with the
 * connection. All are daemon threads, and {@link dev.waza.client.WazaClient#close} waits for them.
 */
package dev.waza.client;
