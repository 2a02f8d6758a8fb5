import type { JsonSchema, JsonValue } from '@skein/base'
import type { GovernedTool } from '../contract/governed.ts'
import { callThrough, type CallingRun } from './call-through.ts'

/** A tool in the form that the AI SDK expects in `tools`. */
export interface AiSdkTool {
  readonly description: string
  /**
   * A Standard Schema that only provides the JSON Schema. Its `validate` accepts every value, because the
   * tool itself checks its arguments when the governed run calls it.
   */
  readonly inputSchema: AiSdkSchema
  readonly execute: (input: unknown, options: { readonly toolCallId: string }) => Promise<JsonValue>
}

interface AiSdkSchema {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => { readonly value: unknown }
    readonly jsonSchema: {
      readonly input: () => Record<string, unknown>
      readonly output: () => Record<string, unknown>
    }
  }
}

/**
 * Converts a run's tools for `generateText`, `streamText` and agents of the AI SDK. The SDK's own
 * approval is not used: an approval part in the message history has no effect here.
 *
 *     const tools = aiSdkTools(run, task.tools)
 *     await generateText({ model: aiSdkModel(run, model), prompt, tools, stopWhen: stepCountIs(20) })
 *
 * Use it with `aiSdkModel`, which records answers: after a wait for a person, the run continues with the
 * recorded calls.
 */
export function aiSdkTools(
  run: CallingRun,
  tools: readonly GovernedTool[],
): Record<string, AiSdkTool> {
  return Object.fromEntries(
    tools.map((tool): [string, AiSdkTool] => [
      tool.name,
      {
        description: tool.description,
        inputSchema: toSchema(tool.parameters),
        execute: (input, { toolCallId }) => callThrough(run, tool, input, toolCallId),
      },
    ]),
  )
}

function toSchema(parameters: JsonSchema): AiSdkSchema {
  const toJson = (): Record<string, unknown> => ({ ...(parameters as object) })
  return {
    '~standard': {
      version: 1,
      vendor: 'skein',
      validate: (value) => ({ value }),
      jsonSchema: { input: toJson, output: toJson },
    },
  }
}
