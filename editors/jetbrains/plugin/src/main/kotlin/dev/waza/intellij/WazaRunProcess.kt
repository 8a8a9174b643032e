package dev.waza.intellij

import com.intellij.execution.process.ProcessHandler
import com.intellij.execution.process.ProcessOutputTypes
import dev.waza.client.Json
import dev.waza.client.RpcException
import dev.waza.client.TestTree
import dev.waza.client.WazaClient
import java.io.OutputStream
import java.nio.file.Path
import java.util.concurrent.CompletableFuture
import java.util.concurrent.CompletionException
import java.util.function.Consumer

/**
 * The platform's view of a run: a process that writes service messages and can be stopped.
 * Continuations of the client's futures run on the client's own thread.
 */
class WazaRunProcess(
    private val client: WazaClient,
    private val configuration: WazaRunConfiguration
) : ProcessHandler(), TestTree.Output {
    private val suite: String = configuration.values.suite.orEmpty()

    @Volatile
    private var runId: String? = null

    @Volatile
    private var stopped = false

    /** Starts the run. */
    fun startRun() {
        places()
            .thenCompose { places -> start(TestTree(places, TestTree.reasonsOf(client), this)) }
            .exceptionally { problem -> fail(problem) }
    }

    private fun start(tree: TestTree): CompletableFuture<Unit> =
        client.run(suite, configuration.parameters(), Consumer { event -> tree.hear(event) }).thenApply { id ->
            runId = id
            if (stopped) {
                cancel(id)
            }
        }

    /** Returns the locations of the tasks, for navigation. */
    private fun places(): CompletableFuture<TestTree.Places> =
        client.request("task.list", mapOf("path" to suite)).thenApply { result ->
            val directory = Path.of(suite).parent
            val lines = LinkedHashMap<String, String>()
            for (each in Json.array(Json.`object`(result)["tasks"])) {
                val task = Json.`object`(each)
                lines[Json.string(task["id"])] = directory.resolve(Json.string(task["file"])).toString() + ":" + Json.number(task["line"])
            }
            TestTree.Places(configuration.suggestedName() ?: suite, suite, lines)
        }

    private fun fail(problem: Throwable) {
        val cause = reason(problem)
        text(cause.message ?: cause.toString(), true)
        for (each in Json.array((cause as? RpcException)?.data()?.get("errors"))) {
            text(Json.string(each), true)
        }
        done("failed")
    }

    private fun reason(problem: Throwable): Throwable = (problem as? CompletionException)?.cause ?: problem

    override fun message(line: String) = notifyTextAvailable(line + "\n", ProcessOutputTypes.STDOUT)

    override fun text(text: String, isError: Boolean) =
        notifyTextAvailable(text + "\n", if (isError) ProcessOutputTypes.STDERR else ProcessOutputTypes.STDOUT)

    override fun done(status: String) {
        runId?.let { client.forget(it) }
        notifyProcessTerminated(if (status == "completed") 0 else 1)
    }

    override fun destroyProcessImpl() {
        stopped = true
        runId?.let { cancel(it) }
    }

    private fun cancel(id: String) {
        client.cancel(id).exceptionally { problem ->
            text(reason(problem).message.orEmpty(), true) // the run continues until its last event arrives
            null
        }
    }

    override fun detachProcessImpl() {
        runId?.let { client.forget(it) }
        notifyProcessDetached()
    }

    override fun detachIsDefault(): Boolean = false

    override fun getProcessInput(): OutputStream? = null
}
