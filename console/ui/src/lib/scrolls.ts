/**
 * Lets the keyboard scroll a box that is wider or taller than its place, and names it. A box
 * in which all is seen is no stop.
 */
export function scrolls(box: HTMLElement) {
  const look = () => {
    const more = box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1;
    if (!more) {
      for (const name of ['tabindex', 'role', 'aria-label']) box.removeAttribute(name);
      return;
    }
    const title = box.closest('section, dialog, main')?.querySelector('h1, h2')?.textContent?.trim();
    box.tabIndex = 0;
    box.setAttribute('role', 'group');
    if (title) box.setAttribute('aria-label', title);
  };
  const size = new ResizeObserver(look);
  size.observe(box);
  for (const child of box.children) size.observe(child);
  return () => size.disconnect();
}
