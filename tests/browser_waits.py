"""Waiting in a browser for what a page shows, without sleeping and without evaluating text, which the page forbids."""

MARK = "performance.getEntriesByName('interactive')"  # that a page sets when all is drawn and painted


def until(page, expression, seconds=60):
    """Look at every frame whether an expression holds; it is an error if it does not in time."""
    page.evaluate(
        f"""() => new Promise((done, fail) => {{
            const end = performance.now() + {1000 * seconds};
            const look = () => {{
                if ({expression}) done();
                else if (performance.now() > end) fail(new Error({expression!r} + " did not come true"));
                else requestAnimationFrame(look);
            }};
            look();
        }})"""
    )


def point_at(page, selector, point):
    """Move the pointer to a point of a plot; return its place, and the lines of the label that appears.

    ``point`` is an expression of ``plot`` with the two coordinates on its axes.
    """
    place = page.evaluate(f"""() => {{
        const plot = document.querySelector({selector!r}), {{ xaxis, yaxis }} = plot._fullLayout, [x, y] = {point};
        plot.scrollIntoView({{ block: "center" }});
        const box = plot.getBoundingClientRect();
        return [box.left + xaxis._offset + xaxis.l2p(x), box.top + yaxis._offset + yaxis.l2p(y)];
    }}""")
    page.mouse.move(*place)
    lines = f"[...document.querySelectorAll({selector + ' .hoverlayer tspan'!r})].map(line => line.textContent)"
    until(page, f"{lines}.length")
    return place, page.evaluate(lines)


def middle_of(page, selector):
    """Bring an element into view at once, and return the middle of it."""
    locator = page.locator(selector)
    locator.evaluate("element => element.scrollIntoView({ block: 'center' })")
    box = locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def opening_seconds(browser, path):
    """Seconds that passed until the page answered, and seconds that its own thread computed for it."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    page = context.new_page()
    client = context.new_cdp_session(page)
    client.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(path.as_uri())
    until(page, f"{MARK}.length")
    passed = page.evaluate(f"{MARK}[0].startTime") / 1000
    measured = {metric["name"]: metric["value"] for metric in client.send("Performance.getMetrics")["metrics"]}
    context.close()
    return passed, measured["TaskDuration"]
