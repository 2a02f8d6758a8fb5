export { scripted, type ScriptedModel, type ScriptedOptions } from './scripted.ts'
export {
  calls,
  cuts,
  emits,
  fails,
  reasons,
  says,
  stops,
  waits,
  type ScriptFunction,
  type ScriptPart,
  type ScriptStep,
} from './script.ts'
