/**
 * A Pydantic AI history becomes a thread and comes back byte for byte: number text, argument text, nulls and the system
 * prompt included, although the thread does not hold the prompt.
 *
 * Prints:
 *
 *     turns: user, agent
 *     prompt in the thread: false
 *     same bytes: true
 *     without the store: the config store does not hold this text (/turns/0/system_prompts/0)
 */

// #region program
import { parseThread, stringifyThread } from '@skein/threads'
import { fromPydanticAI, toPydanticAIText } from '@skein/threads/pydantic-ai'

// What ModelMessagesTypeAdapter.dump_json(result.all_messages()) gives.
const history =
  '[{"parts":[{"content":"You are brief.","timestamp":"2026-03-01T09:00:00Z","dynamic_ref":null,"part_kind":"system-prompt"},' +
  '{"content":"How warm is it?","timestamp":"2026-03-01T09:00:00Z","part_kind":"user-prompt"}],' +
  '"timestamp":null,"instructions":null,"kind":"request","run_id":"r1","conversation_id":null,"metadata":null,"state":"complete"},' +
  '{"parts":[{"tool_name":"warmth","args":{"scale":18.0,"id":12345678901234567890},"tool_call_id":"c1","tool_kind":null,' +
  '"id":null,"provider_name":null,"provider_details":null,"part_kind":"tool-call"}],"timestamp":"2026-03-01T09:00:01Z",' +
  '"kind":"response","run_id":"r1"}]'

const { value: thread, configs } = fromPydanticAI(history, { agentName: 'Thermometer' })
console.log('turns:', thread.turns.map((turn) => turn.turn_type).join(', '))

// The thread can be stored as text anywhere; the prompts live in the config store, by their hash.
const stored = stringifyThread(thread)
console.log('prompt in the thread:', stored.includes('You are brief.'))

const back = toPydanticAIText(parseThread(stored), { configs })
console.log('same bytes:', back.value === history)

const [loss] = toPydanticAIText(thread).lost
console.log(`without the store: ${loss?.reason} (${loss?.pointer})`)
// #endregion program
