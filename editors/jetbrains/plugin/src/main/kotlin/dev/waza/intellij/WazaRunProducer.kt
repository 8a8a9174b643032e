package dev.waza.intellij

import com.intellij.execution.actions.ConfigurationContext
import com.intellij.execution.actions.LazyRunConfigurationProducer
import com.intellij.execution.configurations.ConfigurationFactory
import com.intellij.execution.configurations.ConfigurationTypeUtil
import com.intellij.openapi.util.Ref
import com.intellij.psi.PsiElement
import com.intellij.util.execution.ParametersListUtil

/** Creates run configurations for the clicked element: a suite's file, or a task in it. */
class WazaRunProducer : LazyRunConfigurationProducer<WazaRunConfiguration>() {
    override fun getConfigurationFactory(): ConfigurationFactory =
        ConfigurationTypeUtil.findConfigurationType(WazaConfigurationType::class.java).configurationFactories[0]

    override fun setupConfigurationFromContext(
        configuration: WazaRunConfiguration,
        context: ConfigurationContext,
        sourceElement: Ref<PsiElement>
    ): Boolean {
        val target = target(context) ?: return false
        configuration.values.suite = target.suite
        configuration.values.tasks = tasks(target)
        configuration.setGeneratedName()
        return true
    }

    override fun isConfigurationFromContext(configuration: WazaRunConfiguration, context: ConfigurationContext): Boolean {
        val target = target(context) ?: return false
        return configuration.values.suite == target.suite && configuration.values.tasks.orEmpty() == tasks(target)
    }

    private fun tasks(target: SuiteFiles.Target): String = target.task?.let { ParametersListUtil.join(listOf(it)) }.orEmpty()

    private fun target(context: ConfigurationContext): SuiteFiles.Target? {
        val element = context.psiLocation ?: return null
        SuiteFiles.targetOf(element)?.let { return it }
        val file = element.containingFile?.virtualFile?.takeIf { SuiteFiles.isSuite(it) } ?: return null
        return SuiteFiles.Target(file.path, null)
    }
}
