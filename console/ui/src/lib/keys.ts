/** Whether a key goes into a field, and is not a command. */
export function inField(event: KeyboardEvent) {
  const at = event.target;
  return at instanceof HTMLElement && (at.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName)) && !(at instanceof HTMLInputElement && at.type === 'checkbox');
}
