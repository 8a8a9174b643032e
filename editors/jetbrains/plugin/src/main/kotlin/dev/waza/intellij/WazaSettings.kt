package dev.waza.intellij

import com.intellij.openapi.application.ApplicationManager
import com.intellij.openapi.components.BaseState
import com.intellij.openapi.components.SimplePersistentStateComponent
import com.intellij.openapi.components.State
import com.intellij.openapi.components.Storage
import com.intellij.util.execution.ParametersListUtil

/** How to start the daemon; the same in all projects. */
@State(name = "dev.waza.settings", storages = [Storage("waza.xml")])
class WazaSettings : SimplePersistentStateComponent<WazaSettings.Values>(Values()) {
    class Values : BaseState() {
        var path by string("waza")
        var arguments by string("")
        var environment by map<String, String>()
    }

    /** The program: its path, or its name on the PATH. */
    val program: String get() = state.path?.trim().orEmpty().ifEmpty { "waza" }

    val arguments: List<String> get() = ParametersListUtil.parse(state.arguments.orEmpty())

    val environment: Map<String, String> get() = state.environment.toMap()

    companion object {
        fun get(): WazaSettings = ApplicationManager.getApplication().getService(WazaSettings::class.java)
    }
}
