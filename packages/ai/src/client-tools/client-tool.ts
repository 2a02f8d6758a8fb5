import type { JsonObject, JsonSchema } from '@skein/base'
import type { ProviderMetadata } from '../contract/content.ts'
import type { ToolContext } from '../contract/tool.ts'
import { jsonSchema } from '../json-schema.ts'
import { tool, type DefinedTool, type ToolDeclaration } from '../tools/define.ts'

/** What you give to a tool that a vendor defines: the function that runs it, and what every tool may have. */
export type ClientRun<Args, Result> = Pick<
  ToolDeclaration<Args, Result, ToolContext, string, Args>,
  'run' | 'approval' | 'risk' | 'timeoutMs' | 'sequential' | 'toModel'
>

/** A tool that a vendor defines and this program runs. It goes into the option `tools`, like every other tool. */
export type ClientTool<Args, Result, Name extends string> = DefinedTool<
  Args,
  Result,
  ToolContext,
  Name,
  Args
>

/**
 * Makes such a tool. `definition` is sent to the vendor instead of name, description and schema; a model of another
 * vendor gets those, so that the tool also works as an ordinary one. Arguments are checked like those of `tool()`.
 */
export function clientTool<Args, Result, Name extends string>(
  given: ClientRun<Args, Result>,
  {
    name,
    description,
    parameters,
    providers,
    definition,
  }: {
    readonly name: Name
    readonly description: string
    readonly parameters: JsonSchema
    readonly providers: readonly string[]
    readonly definition: JsonObject
  },
): ClientTool<Args, Result, Name> {
  const metadata: ProviderMetadata = Object.fromEntries(
    providers.map((provider) => [provider, definition]),
  )
  return tool<Args, Result, ToolContext, Name, Args>({
    ...given,
    name,
    description,
    parameters: jsonSchema<Args>(parameters),
    metadata,
  })
}
