import type { Params } from '../contract/provider.ts'
import type { Warning } from '../contract/turn.ts'

/**
 * Returns a warning for each parameter that takes the place of a field which the request has itself, e.g. of the whole
 * conversation. Parameters win (UPP §16.3), but this is rarely meant. `fields` has true for the fields of the request.
 * A schema among the parameters is no such case: it is the documented way to ask for another form of answer.
 */
export function replacedFields(
  params: Params,
  fields: Readonly<Record<string, boolean>>,
): readonly Warning[] {
  return Object.entries(fields).flatMap(([name, isOurs]): readonly Warning[] => {
    if (!isOurs || params[name] === undefined) return []
    const message = `params.${name} was sent instead of what the request says.`
    return [{ code: 'field_replaced', message, pointer: `/params/${name}` }]
  })
}
