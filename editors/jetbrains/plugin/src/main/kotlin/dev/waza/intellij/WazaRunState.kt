package dev.waza.intellij

import com.intellij.execution.DefaultExecutionResult
import com.intellij.execution.ExecutionException
import com.intellij.execution.ExecutionResult
import com.intellij.execution.Executor
import com.intellij.execution.configurations.RunProfileState
import com.intellij.execution.runners.ExecutionEnvironment
import com.intellij.execution.runners.ProgramRunner
import com.intellij.execution.testframework.sm.FileUrlProvider
import com.intellij.execution.testframework.sm.SMTestRunnerConnectionUtil
import com.intellij.execution.testframework.sm.runner.SMTRunnerConsoleProperties
import com.intellij.execution.testframework.sm.runner.SMTestLocator

/** Starts a run and shows it as a tree of tests. */
class WazaRunState(private val configuration: WazaRunConfiguration, private val environment: ExecutionEnvironment) : RunProfileState {
    override fun execute(executor: Executor, runner: ProgramRunner<*>): ExecutionResult {
        val client = try {
            WazaService.get(environment.project).client()
        } catch (e: IllegalStateException) {
            throw ExecutionException(e.message)
        }
        val process = WazaRunProcess(client, configuration)
        val properties = WazaConsoleProperties(configuration, executor)
        val console = SMTestRunnerConnectionUtil.createAndAttachConsole("Waza", process, properties)
        process.startNotify()
        process.startRun()
        return DefaultExecutionResult(console, process)
    }
}

/** Behavior of the tree: nodes are identified by their ids, because trials run at the same time. */
class WazaConsoleProperties(configuration: WazaRunConfiguration, executor: Executor) :
    SMTRunnerConsoleProperties(configuration, "Waza", executor) {
    init {
        isIdBasedTestTree = true
        isPrintTestingStartedTime = false
    }

    override fun getTestLocator(): SMTestLocator = FileUrlProvider.INSTANCE
}
