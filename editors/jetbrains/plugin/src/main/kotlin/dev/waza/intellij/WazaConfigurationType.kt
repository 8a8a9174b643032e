package dev.waza.intellij

import com.intellij.execution.configurations.ConfigurationFactory
import com.intellij.execution.configurations.ConfigurationTypeBase
import com.intellij.execution.configurations.RunConfiguration
import com.intellij.openapi.components.BaseState
import com.intellij.openapi.project.Project
import com.intellij.openapi.util.IconLoader
import com.intellij.openapi.util.NotNullLazyValue
import javax.swing.Icon

/** The type of run configurations for a suite, or some of its tasks. */
class WazaConfigurationType : ConfigurationTypeBase(
    "WazaRunConfiguration", "Waza", "Run an eval suite", NotNullLazyValue.createValue { ICON }
) {
    init {
        addFactory(Factory())
    }

    private inner class Factory : ConfigurationFactory(this@WazaConfigurationType) {
        override fun getId(): String = "Waza"

        override fun getOptionsClass(): Class<out BaseState> = WazaRunOptions::class.java

        override fun createTemplateConfiguration(project: Project): RunConfiguration = WazaRunConfiguration(project, this, "")
    }

    companion object {
        val ICON: Icon = IconLoader.getIcon("/icons/waza.svg", WazaConfigurationType::class.java)
    }
}
