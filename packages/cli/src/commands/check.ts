import { loadDefinitions } from '../connect/embed.ts'
import {
  defineCommand,
  ExitCode,
  FOLDER_OPERAND,
  JSON_OPTION,
  type Command,
} from '../terminal/command.ts'
import { problemLine } from '../terminal/output.ts'

/** `skein check` */
export const check: Command = defineCommand({
  operands: [FOLDER_OPERAND],
  options: {
    strict: { type: 'boolean', description: 'Counts warnings as problems.' },
    ...JSON_OPTION,
  },
  examples: ['skein check', 'skein check examples/agents --json'],
  async run({ values, operands: [folder], output }) {
    const { DefinitionError } = await import('@skein/runtime')
    const loaded = await loadDefinitions(folder).catch((error: unknown) => {
      if (error instanceof DefinitionError) return error
      throw error
    })
    const isBroken = loaded instanceof DefinitionError
    const problems = isBroken ? loaded.problems : []
    const warnings = isBroken ? [] : loaded.warnings
    const agents = isBroken ? [] : [...loaded.agents.keys()]
    const found = values.strict ? [...problems, ...warnings] : problems
    if (values.json) output.json({ agents, problems: found, warnings })
    else {
      for (const problem of found) output.line(problemLine(problem))
      if (!values.strict) for (const one of warnings) output.say(`warning: ${problemLine(one)}`)
    }
    const count = found.length === 1 ? '1 problem' : `${found.length} problems`
    output.say(found.length > 0 ? count : `No problems. Agents: ${agents.join(', ') || 'none'}.`)
    return found.length > 0 ? ExitCode.Failed : ExitCode.Done
  },
})
