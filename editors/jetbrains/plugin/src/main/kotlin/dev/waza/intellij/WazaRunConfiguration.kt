package dev.waza.intellij

import com.intellij.execution.Executor
import com.intellij.execution.configurations.ConfigurationFactory
import com.intellij.execution.configurations.LocatableConfigurationBase
import com.intellij.execution.configurations.LocatableRunConfigurationOptions
import com.intellij.execution.configurations.RunConfiguration
import com.intellij.execution.configurations.RunProfileState
import com.intellij.execution.configurations.RuntimeConfigurationError
import com.intellij.execution.runners.ExecutionEnvironment
import com.intellij.openapi.options.SettingsEditor
import com.intellij.openapi.project.Project
import com.intellij.util.execution.ParametersListUtil
import java.nio.file.Files
import java.nio.file.Path

/** The stored values of a run configuration. */
class WazaRunOptions : LocatableRunConfigurationOptions() {
    var suite by string("")
    var tasks by string("")
    var trials by property(0)
}

/** Runs a suite. */
class WazaRunConfiguration(project: Project, factory: ConfigurationFactory, name: String) :
    LocatableConfigurationBase<WazaRunOptions>(project, factory, name) {

    /** The stored values, created by the factory. */
    val values: WazaRunOptions get() = getOptions() as WazaRunOptions

    /** Ids or globs of the tasks to run; empty for all. */
    val taskList: List<String> get() = ParametersListUtil.parse(values.tasks.orEmpty())

    override fun getConfigurationEditor(): SettingsEditor<out RunConfiguration> = WazaRunEditor()

    override fun getState(executor: Executor, environment: ExecutionEnvironment): RunProfileState = WazaRunState(this, environment)

    override fun checkConfiguration() {
        val suite = values.suite.orEmpty()
        if (suite.isEmpty()) {
            throw RuntimeConfigurationError("Choose a suite.")
        }
        if (!Files.isRegularFile(Path.of(suite))) {
            throw RuntimeConfigurationError("The file $suite does not exist.")
        }
    }

    override fun suggestedName(): String? {
        val suite = values.suite?.takeIf { it.isNotEmpty() } ?: return null
        val path = Path.of(suite)
        val name = (path.parent?.fileName ?: path.fileName).toString()
        return if (taskList.isEmpty()) name else name + ": " + taskList.joinToString(", ")
    }

    /** The parameters of the request that starts the run, besides the suite. */
    fun parameters(): Map<String, Any> {
        val all = LinkedHashMap<String, Any>()
        if (taskList.isNotEmpty()) {
            all["tasks"] = taskList
        }
        if (values.trials > 0) {
            all["trials"] = values.trials
        }
        return all
    }
}
