/**
 * Spans by the OpenTelemetry conventions for generative AI: one for each inference, one for each
 * tool run. Any tracer of `@opentelemetry/api` will do; this one prints.
 *
 * Prints:
 *
 *     chat script: 4 in, 4 out, ["tool_use"]
 *     execute_tool now: Tells the time.
 *     chat script: 23 in, 3 out, ["end_turn"]
 *     It is noon.
 */

// #region program
import { llm, type Tool } from '@skein/ai'
import { telemetryMiddleware, type SpanAttributes, type Tracer } from '@skein/ai/middleware'
import { calls, says, scripted } from '@skein/ai/testing'

const tracer: Tracer = {
  startSpan(name, { attributes } = {}) {
    const all: SpanAttributes = { ...attributes }
    return {
      setAttributes: (more) => Object.assign(all, more),
      setStatus: ({ message }) => console.log('failed:', message),
      end: () => console.log(`${name}: ${describe(all)}`),
    }
  },
}

function describe(span: SpanAttributes): string {
  if (span['gen_ai.operation.name'] === 'execute_tool') return `${span['gen_ai.tool.description']}`
  const tokens = `${span['gen_ai.usage.input_tokens']} in, ${span['gen_ai.usage.output_tokens']} out`
  return `${tokens}, ${JSON.stringify(span['gen_ai.response.finish_reasons'])}`
}

const now: Tool = {
  name: 'now',
  description: 'Tells the time.',
  parameters: { type: 'object' },
  run: () => '12:00',
}
// Messages, arguments and results stay out of the spans unless `captureContent` is set.
const middleware = [telemetryMiddleware({ tracer })]
const model = scripted([calls('now', { city: 'Paris' }), says('It is noon.')])
const turn = await llm({ model, tools: [now], middleware }).generate('What time is it?')
console.log(turn.text)
// #endregion program
