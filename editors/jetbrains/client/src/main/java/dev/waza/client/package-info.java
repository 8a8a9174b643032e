/**
 * A client of the waza daemon, for any program on the JVM: no dependencies, Java 17.
 *
 * <p>Begin with {@link dev.waza.client.WazaClient}: it starts {@code waza jsonrpc}, keeps it alive,
 * and folds what the daemon tells into the {@linkplain dev.waza.client.RunState state of each run}.
 *
 * <p><b>Threads.</b> A client has one thread of its own, the <i>owner</i>. It alone changes what the
 * client knows, calls listeners and completes futures, in the order in which the daemon spoke; so
 * listeners and what hangs on futures must not block it. Each connection adds one thread that reads
 * messages and, for a process, one that drains stderr; both end with the connection. All are daemon
 * threads, and {@link dev.waza.client.WazaClient#close} waits for them.
 */
package dev.waza.client;
